"""The processes that decode, from the outside: workers, and what forks them (`app/images/fork_server.py`)."""

import logging
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from app.images import fork_server
from app.images.fork_server import ORDER, READY, REPORT, Work

log = logging.getLogger(__name__)

STOP_S = 5.0
READY_S = 60.0  # for a new process on a busy machine; usually milliseconds
# Beginnings of variables that the interpreter and its libraries read. No others are passed on: API keys and the store's
# password are in the environment, and an image may take a worker over.
PASSED_ON = ("PATH", "PYTHON", "LD_", "LANG", "LC_", "TZ", "OPENBLAS_")
SET = {
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_TRIM_THRESHOLD_": "16777216",  # glibc keeps this much freed memory: else an image may cost 350 page faults
    "MALLOC_MMAP_THRESHOLD_": "4194304",  # and gives back blocks of this size and more, as large images need them
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",  # huge pages: faults of small ones take a third of decoding 12 MP
    "PILLOW_BLOCK_SIZE": "1024m",  # an image is in one piece, which app/images/resize.py reads without a copy
}


@dataclass(eq=False)
class Worker:
    process: int = 0  # 0 before the first
    connection: socket.socket | None = None

    def is_ready(self) -> bool:
        """Whether it waits for a request. A worker may have been killed from outside, without any image."""
        if self.connection is None:
            return False
        try:
            self.connection.recv(1, socket.MSG_PEEK)  # bytes without a request are as wrong as a closed socket
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    def kill(self) -> None:
        if self.process:  # 0 would be the group of this process: the whole service
            with suppress(ProcessLookupError):
                os.kill(self.process, signal.SIGKILL)

    def close(self) -> None:
        if self.connection:
            self.connection.close()
            self.connection = None


class ForkServer:
    """`app/images/fork_server.py`, from the outside. Threads may share it; all methods block."""

    def __init__(self, *, work: Work, max_pixels: int) -> None:
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-P", "-m", fork_server.__name__, str(theirs.fileno())]
            self._popen = subprocess.Popen(
                command, stdin=subprocess.PIPE, env=_environment(), pass_fds=[theirs.fileno()], process_group=0
            )
        assert self._popen.stdin
        with self._popen.stdin as stdin:
            pickle.dump((work, max_pixels), stdin)

    @property
    def process(self) -> int:
        return self._popen.pid

    def is_alive(self) -> bool:
        return self._popen.poll() is None

    def renew(self, worker: Worker) -> int:
        """Put a new process in place of `worker`'s, and return the exit code of the old one: -SIGKILL if it ended with
        an earlier fork server. Raises OSError when none can be started.
        """
        worker.close()
        ours, theirs = socket.socketpair()
        with theirs, self._lock:
            try:
                socket.send_fds(self._control, [ORDER.pack(worker.process)], [theirs.fileno()])
                report = self._control.recv(REPORT.size)
            except OSError:  # it has ended, or another thread has noticed that and stopped it
                report = b""
        if len(report) < REPORT.size:
            ours.close()
            raise ConnectionError("the fork server has ended")
        old = worker.process
        worker.process, exit_code = REPORT.unpack(report)
        if exit_code:
            log.warning("a decoding process ended with exit code %d", exit_code)
        ours.settimeout(READY_S)
        if not worker.process or ours.recv(len(READY)) != READY:
            ours.close()
            raise ChildProcessError("no process can be started that decodes images")
        ours.setblocking(False)
        worker.connection = ours
        return exit_code if old else -signal.SIGKILL

    def stop(self) -> None:
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)  # wakes a thread that waits in `renew`
        with self._lock:
            self._control.close()
        try:
            self._popen.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()


def _environment() -> dict[str, str]:
    paths = [str(Path(__file__).parents[__name__.count(".")]), *filter(None, [os.environ.get("PYTHONPATH")])]
    passed = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}
    return {**passed, **SET, "PYTHONPATH": os.pathsep.join(paths)}
