"""A server in its own process, for the time of a test or of a measurement."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from app.settings import DEMO_BUNDLE

HOST = "127.0.0.1"
START_TIMEOUT_S = 120.0
END_TIMEOUT_S = 20.0
PATIENT: dict[str, Any] = {  # requests wait and none is refused
    "max_queue_wait_s": 60,
    "request_timeout_s": 120,
    "store_timeout_s": 5,
}


class Server(subprocess.Popen[bytes]):
    """Any server on a port of loopback. At the end of a `with` block it is killed, and what it has started too. An
    error in the block says how the output ends. That is a file: a process whose pipe is full waits until it is read.
    """

    seconds_to_ready: float

    def __init__(
        self, command: list[str], *, port: int, environment: dict[str, str], folder: Path | None, patience_s: float
    ) -> None:
        """It runs in `folder` and leaves its output there, in `log`. With `patience_s` it gets a SIGTERM and so long to
        end by itself.
        """
        self.port = port
        self.url = f"http://{HOST}:{port}"
        self._log = (folder / "log").open("ab") if folder else NamedTemporaryFile()  # noqa: SIM115
        self._patience_s = patience_s
        self._start = time.perf_counter()
        super().__init__(command, env=os.environ | environment, cwd=folder, stdout=self._log, stderr=self._log)

    def output(self) -> str:
        """All that it has written so far."""
        return Path(self._log.name).read_text(errors="replace")

    def wait_until(self, ready: Callable[[], bool]) -> None:
        """Raises RuntimeError if it ends instead, or is not ready within START_TIMEOUT_S."""
        while not ready():
            if self.poll() is not None or time.perf_counter() > self._start + START_TIMEOUT_S:
                raise RuntimeError(f"the server did not start: {self.args!r}")
            time.sleep(0.05)
        self.seconds_to_ready = time.perf_counter() - self._start

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error:
            error.add_note(self.output()[-1000:])
        self.end()

    def end(self) -> None:
        """And what it leaves behind."""
        descendants = {pid: _started_at(pid) for pid in family(self.pid)[1:]} if self.poll() is None else {}
        if self._patience_s:
            self.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.wait(self._patience_s)
        self.kill()
        self.wait()
        for pid, moment in descendants.items():
            if _started_at(pid) == moment:  # and not another process with the same id
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self._log.close()

    def anonymous_mib(self) -> float:
        """The allocated part of its memory, which a leak makes grow. The share of file pages also grows when other
        programs that use the same libraries end.
        """
        return self.resident_mib("Pss_Anon:")

    def resident_mib(self, kind: str = "Pss:") -> float:
        """Of all its processes; a page that several share is counted once (proportional set size)."""
        kilobytes = 0
        for pid in family(self.pid):
            with suppress(FileNotFoundError, ProcessLookupError):
                rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
                kilobytes += next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith(kind))
        return kilobytes / 1024

    def cpu_seconds(self) -> float:
        """User and system time so far of all its threads and processes, including those that have ended."""
        ticks = 0
        for pid in family(self.pid):
            with suppress(FileNotFoundError, ProcessLookupError):
                ticks += sum(int(field) for field in _stat(pid)[11:15])  # utime stime cutime cstime
        return ticks / os.sysconf("SC_CLK_TCK")

    def main_thread_seconds(self) -> float:
        """Processor time so far of the thread that began the process, to the nanosecond."""
        return int(Path(f"/proc/{self.pid}/task/{self.pid}/schedstat").read_text().split()[0]) / 1e9


class Process(Server):
    """This project's server: `python -m app`, with settings such as `store_max_bytes=0`, on a free port unless one is
    given. Unless settings say otherwise, it computes on the CPU and logs warnings alone. `inside` makes its command one
    that runs it in a control group.
    """

    def __init__(
        self, *, module: str = "app", port: int = 0, inside: Callable[[list[str]], list[str]] = list, **settings: object
    ) -> None:
        port = port or free_port()
        variables = variables_of(**{"device": "cpu", "log_level": "warning", **settings}, port=port)
        command = inside([sys.executable, "-m", module])
        super().__init__(command, port=port, environment=variables, folder=None, patience_s=0)

    def wait_until_ready(self) -> None:
        self.wait_until(partial(is_ready, self.port))


@contextmanager
def running(bundle: Path = DEMO_BUNDLE, **settings: Any) -> Iterator[Process]:
    """One that is ready, and ends without a delay."""
    with Process(**{"bundle": bundle, "drain_delay_s": 0, **settings}) as process:
        process.wait_until_ready()
        yield process


@contextmanager
def started(
    command: list[str], *, port: int, ready: Callable[[], bool], folder: Path | None = None, **environment: str
) -> Iterator[Server]:
    """Any server that is ready, with these variables. At the end it has END_TIMEOUT_S to end by itself."""
    with Server(command, port=port, environment=environment, folder=folder, patience_s=END_TIMEOUT_S) as server:
        server.wait_until(ready)
        yield server


def is_ready(port: int) -> bool:
    """Asked by http.client, because a client of httpx takes 26 ms of a processor to make."""
    with closing(HTTPConnection(HOST, port, timeout=5)) as connection, suppress(OSError, HTTPException):
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    return False


def variables_of(**settings: object) -> dict[str, str]:
    """`log_level="info"` is VIT_LOG_LEVEL; names in capitals are other variables of an environment."""
    return {name if name.isupper() else f"VIT_{name.upper()}": str(value) for name, value in settings.items()}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def family(pid: int) -> list[int]:
    """A process and all that descend from it."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(FileNotFoundError, ProcessLookupError):
                parents.setdefault(int(_stat(int(entry.name))[1]), []).append(int(entry.name))
    found = [pid]
    for member in found:  # grows as it is read
        found += parents.get(member, [])
    return found


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the third on: state, parent, ..."""
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()


def _started_at(pid: int) -> str | None:
    with suppress(FileNotFoundError, ProcessLookupError):
        return _stat(pid)[19]
    return None
