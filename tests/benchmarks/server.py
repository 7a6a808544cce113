"""The real server in a process of its own, for as long as a measurement takes."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx


@dataclass(frozen=True, kw_only=True)
class Server:
    url: str
    pid: int
    seconds_to_ready: float

    def resident_mib(self) -> float:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))

    def cpu_seconds(self) -> float:
        """User and system time of all its threads so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def running(bundle: Path) -> Iterator[Server]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "app"],
        env={**os.environ, "VIT_BUNDLE": str(bundle), "VIT_PORT": str(port), "VIT_LOG_LEVEL": "warning"},
    )
    url = f"http://127.0.0.1:{port}"
    try:
        while True:
            try:
                httpx.get(f"{url}/readyz").raise_for_status()
                break
            except httpx.TransportError:
                if process.poll() is not None:
                    raise RuntimeError("the server did not start") from None
                time.sleep(0.02)
        yield Server(url=url, pid=process.pid, seconds_to_ready=time.perf_counter() - start)
    finally:
        process.terminate()
        process.wait(30)
