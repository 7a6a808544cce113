"""What the process of a server holds."""

import time
from pathlib import Path

from tests.support.server import Server

SETTLES_S = 20.0


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def settled(server: Server) -> None:
    """Wait until the server has noticed that clients left: until its number of descriptors is constant for a second."""
    until = time.monotonic() + SETTLES_S
    counts = [descriptors(server.pid)]
    while time.monotonic() < until and (len(counts) < 11 or len(set(counts[-11:])) > 1):
        time.sleep(0.1)
        counts.append(descriptors(server.pid))
