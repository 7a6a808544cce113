"""What the process of a server holds."""

import time
from pathlib import Path

from tests.benchmarks.server import Server


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def settled(server: Server, seconds: float = 20) -> None:
    """Wait until the server has noticed that clients left: until its number of descriptors is constant for a second."""
    until = time.monotonic() + seconds
    counts = [descriptors(server.pid)]
    while time.monotonic() < until and (len(counts) < 11 or len(set(counts[-11:])) > 1):
        time.sleep(0.1)
        counts.append(descriptors(server.pid))


def reset_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")  # proc(5): the peak becomes the current resident memory
