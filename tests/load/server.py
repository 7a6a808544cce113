"""The real server, with settings, for as long as it is attacked."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.benchmarks.server import Server, free_port, started


@contextmanager
def served(folder: Path, **settings: object) -> Iterator[Server]:
    """`python -m app` with the demo bundle; its log is `folder`/log."""
    port = free_port()
    environment = {f"VIT_{name.upper()}": str(value) for name, value in ({"device": "cpu"} | settings).items()}
    environment |= {"VIT_PORT": str(port), "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])}

    def ready() -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{port}/readyz").is_success
        except httpx.TransportError:
            return False

    command = [sys.executable, "-m", "app"]
    with started(command, port=port, environment=environment, ready=ready, folder=folder) as server:
        yield server


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def settled(server: Server, seconds: float = 20) -> None:
    """Wait until the server has noticed who has left: until its descriptors are no more for a second."""
    until = time.monotonic() + seconds
    counts = [descriptors(server.pid)]
    while time.monotonic() < until and (len(counts) < 11 or len(set(counts[-11:])) > 1):
        time.sleep(0.1)
        counts.append(descriptors(server.pid))


def reset_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")  # proc(5): the peak becomes what is resident now


def peak_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))
