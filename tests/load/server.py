"""The real server with given settings, for the time of a test."""

import time
from contextlib import AbstractContextManager
from pathlib import Path

from app.settings import DEMO_BUNDLE
from tests.benchmarks.server import Server, running


def served(folder: Path, **settings: object) -> AbstractContextManager[Server]:
    """`python -m app` with the demo bundle; its log is `folder`/log."""
    chosen = {"device": "cpu", "log_level": "info"} | settings
    variables = {f"VIT_{name.upper()}": str(value) for name, value in chosen.items()}
    return running(DEMO_BUNDLE, variables, folder=folder)


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def settled(server: Server, seconds: float = 20) -> None:
    """Wait until the server has noticed that clients left: until its number of descriptors is constant for a second."""
    until = time.monotonic() + seconds
    counts = [descriptors(server.pid)]
    while time.monotonic() < until and (len(counts) < 11 or len(set(counts[-11:])) > 1):
        time.sleep(0.1)
        counts.append(descriptors(server.pid))


def reset_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")  # proc(5): the peak becomes the current resident memory
