"""Worker processes that decode and can be killed: a crash or a hang costs the image that caused it and no other.

The pool is our own: it never unpickles what a worker sends, because an image may have taken the worker over, and it
forks workers from a small nursery. docs/decoding.md compares it with pebble, concurrent.futures and multiprocessing.
"""

import asyncio
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
from functools import partial
from pathlib import Path

from app.images import nursery
from app.images.lanes import Lanes
from app.images.nursery import ANSWER, ORDER, REPORT, REQUEST, Work
from app.images.watch import Watch

log = logging.getLogger(__name__)

MAX_ANSWER_BYTES = 2**30
STOP_S = 5.0
# Variables that the interpreter and its libraries read. No others are passed on: API keys and the store's password are
# in the environment, and an image may take a worker over.
ENVIRONMENT = ("PATH", "PYTHON", "LD_", "LANG", "LC_", "TZ", "OPENBLAS_")


class WorkerFailed(Exception):
    """A worker ended, or sent no answer, in the middle of a request. Another takes its place."""


class WorkerKilled(WorkerFailed):
    """A worker was ended from outside: by the kernel when memory was short, by a person, or with its nursery."""


class WorkerTimedOut(WorkerFailed):
    """A worker was killed because it worked too long at a request."""


@dataclass(eq=False)
class _Worker:
    process: int = 0  # 0 before the first
    connection: socket.socket | None = None

    def is_ready(self) -> bool:
        """Whether it waits for a request. A worker may have been killed from outside, which is no image's fault."""
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
        with suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGKILL)

    def close(self) -> None:
        if self.connection:
            self.connection.close()
            self.connection = None


class _Nursery:
    """`app/images/nursery.py`, from the outside. Threads may share it; all methods block."""

    def __init__(self, *, work: Work, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-m", nursery.__name__, str(theirs.fileno())]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, env=_environment(), pass_fds=[theirs.fileno()], process_group=0
            )
        assert self._process.stdin
        with self._process.stdin as stdin:
            pickle.dump(work, stdin)

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def renew(self, worker: _Worker) -> int:
        """Put a new process in place of `worker`'s, and return the exit code of the old one: -SIGKILL if it ended with
        an earlier nursery. Raises OSError when none can be started.
        """
        worker.close()
        ours, theirs = socket.socketpair()
        with theirs, self._lock:
            socket.send_fds(self._control, [ORDER.pack(worker.process, self._memory_bytes)], [theirs.fileno()])
            report = self._control.recv(REPORT.size)
        if len(report) < REPORT.size:
            ours.close()
            raise ConnectionError("the nursery has ended")
        old = worker.process
        worker.process, exit_code = REPORT.unpack(report)
        if exit_code:
            log.warning("a decoding process ended with exit code %d", exit_code)
        if not worker.process:
            ours.close()
            raise ChildProcessError("no process can be forked")
        ours.setblocking(False)
        worker.connection = ours
        return exit_code if old else -signal.SIGKILL

    def stop(self) -> None:
        self._control.close()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _environment() -> dict[str, str]:
    paths = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    passed = {name: value for name, value in os.environ.items() if name.startswith(ENVIRONMENT)}
    return {**passed, "PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1"}


class WorkerPool:
    """Processes that each do one request at a time. `start` and `stop` block; `run` belongs to the event loop."""

    def __init__(
        self, *, work: Work, workers: int, max_small: int, max_pixels_in_work: int, memory_bytes: int, timeout_s: float
    ) -> None:
        """`work` is pickled and sent to the nursery. `max_small` and `max_pixels_in_work` are those of `Lanes`,
        `memory_bytes` limits each worker, and `timeout_s` the time that it works at one request.
        """
        self._work = work
        self._memory_bytes = memory_bytes
        self._timeout_s = timeout_s
        self._max_pixels_in_work = max_pixels_in_work
        self._lanes = Lanes(workers=workers, max_small=max_small, max_pixels_in_work=max_pixels_in_work)
        self._workers = [_Worker() for _ in range(workers)]
        self._idle = list(self._workers)
        self._nursery: _Nursery | None = None
        self._starting = threading.Lock()

    def start(self) -> None:
        for worker in self._workers:
            self._renew(worker)

    def stop(self) -> None:
        """Requests in work are dropped."""
        for worker in self._workers:
            if worker.connection:
                worker.kill()
            worker.close()
        if self._nursery:
            self._nursery.stop()

    async def run(self, request: bytes, data: bytes, *, large_pixels: int = 0) -> bytearray:
        """A worker's answer to a request about the upload `data`. `large_pixels` are those of a large image, see Lanes.

        A caller that is cancelled while it waits leaves the queue; one that is cancelled later loses its answer.
        Raises WorkerFailed, WorkerKilled or WorkerTimedOut, and OSError when no process can be started.
        """
        large_pixels = min(large_pixels, self._max_pixels_in_work)
        await self._lanes.enter(large_pixels)
        worker = self._idle.pop()
        exchange = asyncio.ensure_future(self._exchange(worker, request, data))
        exchange.add_done_callback(partial(self._finished, worker, large_pixels))
        return await asyncio.shield(exchange)

    def _finished(self, worker: _Worker, large_pixels: int, exchange: asyncio.Future[bytearray]) -> None:
        if not exchange.cancelled():
            exchange.exception()  # marks it as seen, even if the caller has left
        self._idle.append(worker)
        self._lanes.leave(large_pixels)

    async def _exchange(self, worker: _Worker, request: bytes, data: bytes) -> bytearray:
        if not worker.is_ready():
            await asyncio.get_running_loop().run_in_executor(None, self._renew, worker)
        assert worker.connection
        watch = Watch(worker.process, kill=worker.kill, timeout_s=self._timeout_s)
        try:
            await _send(worker.connection, REQUEST.pack(len(request), len(data)) + request, data)
            (size,) = ANSWER.unpack(await _receive(worker.connection, ANSWER.size))
            if size > MAX_ANSWER_BYTES:
                raise WorkerFailed("the answer is too large")
            return await _receive(worker.connection, size)
        except OSError as error:
            watch.stop()  # it must not kill the next process
            worker.close()
            if watch.timed_out:
                raise WorkerTimedOut from error
            raise await self._why_it_ended(worker) from error
        except BaseException:
            worker.kill()
            worker.close()
            raise
        finally:
            watch.stop()

    async def _why_it_ended(self, worker: _Worker) -> WorkerFailed:
        """A new process takes its place, because the exit code is known only then."""
        try:
            exit_code = await asyncio.get_running_loop().run_in_executor(None, self._renew, worker)
        except OSError:  # its nursery has ended, or cannot fork
            return WorkerKilled()
        return WorkerKilled() if exit_code == -signal.SIGKILL else WorkerFailed(f"exit code {exit_code}")

    def _renew(self, worker: _Worker) -> int:
        nursery = self._living_nursery()
        try:
            return nursery.renew(worker)
        except ConnectionError:  # it has ended since
            nursery.stop()
            return self._living_nursery().renew(worker)

    def _living_nursery(self) -> _Nursery:
        with self._starting:
            if self._nursery is None or not self._nursery.is_alive():
                if self._nursery:
                    self._nursery.stop()
                self._nursery = _Nursery(work=self._work, memory_bytes=self._memory_bytes)
                for each in self._workers:
                    each.process = 0  # ended with their nursery
            return self._nursery


async def _send(connection: socket.socket, header: bytes, data: bytes) -> None:
    """Both with one system call where they fit into the socket, and without a copy of `data`."""
    sent = connection.sendmsg([header, data])  # nothing else is in the socket, so the header fits
    await asyncio.get_running_loop().sock_sendall(connection, memoryview(data)[sent - len(header) :])


async def _receive(connection: socket.socket, size: int) -> bytearray:
    loop = asyncio.get_running_loop()
    data = bytearray(size)
    view = memoryview(data)
    while view:
        received = await loop.sock_recv_into(connection, view)
        if not received:
            raise ConnectionError("the worker has ended")
        view = view[received:]
    return data
