"""Processes that decode and can be killed: a crash or a hang costs the picture that caused it and nothing else.

A pool of our own for three reasons. What a decoder sends back is not unpickled, for it may have been taken over. A
worker is forked from a small nursery and not from this process. And an exchange is two system calls on the event loop,
no threads: docs/decoding.md has the figures beside pebble's and concurrent.futures'.
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
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from app.images import nursery
from app.images.lanes import Lanes
from app.images.nursery import ORDER, REPORT, SIZE, Work

log = logging.getLogger(__name__)

PATIENCE = 5  # times the limit, for a worker that wants to go on and gets no processor
MAX_ANSWER_BYTES = 2**30
STOP_S = 5.0


class DecoderFailed(Exception):
    """A worker ended in the middle of a request; another takes its place."""


class DecoderHung(DecoderFailed):
    """It was killed, because the request took too long."""


@dataclass(eq=False)
class _Worker:
    process: int = 0  # 0 before the first
    connection: socket.socket | None = None

    def is_well(self) -> bool:
        """Whether it waits for a request. It may have been killed for reasons that no picture has to answer for."""
        if self.connection is None:
            return False
        try:
            self.connection.recv(1, socket.MSG_PEEK)  # nothing has been asked: an answer is as wrong as the end
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

    def __init__(self, *, work: Work, memory: int) -> None:
        self._memory = memory
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-m", nursery.__name__, str(theirs.fileno())]
            paths = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1"}
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, env=environment, pass_fds=[theirs.fileno()], process_group=0
            )
        assert self._process.stdin
        with self._process.stdin as stdin:
            pickle.dump(work, stdin)

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def renew(self, worker: _Worker) -> None:
        """Put a new process in place of `worker`'s. Raises OSError when none can be had."""
        worker.close()
        ours, theirs = socket.socketpair()
        with theirs, self._lock:
            socket.send_fds(self._control, [ORDER.pack(worker.process, self._memory)], [theirs.fileno()])
            report = self._control.recv(REPORT.size)
        if len(report) < REPORT.size:
            ours.close()
            raise ConnectionError("the nursery has ended")
        ours.setblocking(False)
        worker.process, ended = REPORT.unpack(report)
        worker.connection = ours
        if ended:
            log.warning("a decoder ended with %d and was replaced", ended)

    def stop(self) -> None:
        self._control.close()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Decoders:
    """Processes that each do one request at a time. `start` and `stop` block; `run` belongs to the event loop."""

    def __init__(self, *, work: Work, workers: int, room: int, memory: int, timeout_s: float) -> None:
        """`work` is pickled. `room` is for the weights of all large requests together, `memory` in bytes a worker."""
        self._work = work
        self._memory = memory
        self._timeout_s = timeout_s
        self._lanes = Lanes(workers=workers, room=room)
        self._room = room
        self._workers = [_Worker() for _ in range(workers)]
        self._idle = list(self._workers)
        self._nursery: _Nursery | None = None
        self._starting = threading.Lock()

    def start(self) -> None:
        for worker in self._workers:
            self._renew(worker)

    def stop(self) -> None:
        """What is still in work is dropped."""
        for worker in self._workers:
            if worker.connection:
                worker.kill()
            worker.close()
        if self._nursery:
            self._nursery.stop()

    async def run(self, request: bytes, *, weight: int = 0) -> bytearray:
        """The worker's answer. `weight` above 0 makes it a large request, see Lanes.

        A caller that is cancelled while it waits leaves the queue; later its answer is dropped.
        Raises DecoderFailed or DecoderHung, and OSError when no process can be started.
        """
        weight = min(weight, self._room)
        await self._lanes.enter(weight)
        worker = self._idle.pop()
        exchange = asyncio.ensure_future(self._exchange(worker, request))
        exchange.add_done_callback(partial(self._finished, worker, weight))
        return await asyncio.shield(exchange)

    def _finished(self, worker: _Worker, weight: int, exchange: asyncio.Future[bytearray]) -> None:
        if not exchange.cancelled():
            exchange.exception()  # it has been seen, even if the caller has left
        self._idle.append(worker)
        self._lanes.leave(weight)

    async def _exchange(self, worker: _Worker, request: bytes) -> bytearray:
        loop = asyncio.get_running_loop()
        if not worker.is_well():
            await loop.run_in_executor(None, self._renew, worker)
        assert worker.connection
        watch = _Watch(worker, timeout_s=self._timeout_s)
        answer = None
        try:
            await loop.sock_sendall(worker.connection, SIZE.pack(len(request)) + request)
            (size,) = SIZE.unpack(await _receive(worker.connection, SIZE.size))
            if size > MAX_ANSWER_BYTES:
                raise ConnectionError("an answer of no sensible size")
            answer = await _receive(worker.connection, size)
            return answer
        except OSError as error:
            raise (DecoderHung if watch.bitten else DecoderFailed) from error
        finally:
            watch.stop()
            if answer is None:
                worker.kill()
                worker.close()

    def _renew(self, worker: _Worker) -> None:
        with self._starting:
            if self._nursery and not self._nursery.is_alive():
                self._nursery.stop()
                self._nursery = None
            if self._nursery is None:
                self._nursery = _Nursery(work=self._work, memory=self._memory)
                for each in self._workers:
                    each.process = 0  # ended with their nursery
        self._nursery.renew(worker)


class _Watch:
    """Kills a worker that works too long at a request. Time that it was kept waiting for a processor does not count,
    up to a bound: it is niced, and a large picture beside a busy model is no hang.
    """

    def __init__(self, worker: _Worker, *, timeout_s: float) -> None:
        self._worker = worker
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._give_up = self._loop.time() + PATIENCE * timeout_s
        self._worked = _cpu_seconds(worker.process)
        self.bitten = False
        self._timer = self._loop.call_later(timeout_s, self._look)

    def stop(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        left = self._timeout_s - (_cpu_seconds(self._worker.process) - self._worked)
        if _is_runnable(self._worker.process) and left > 0 and self._loop.time() < self._give_up:
            self._timer = self._loop.call_later(max(left, 0.05), self._look)
            return
        self.bitten = True
        self._worker.kill()


def _cpu_seconds(process: int) -> float:
    try:
        return time.clock_gettime((~process << 3) | 2)  # what clock_getcpuclockid(3) gives on Linux
    except OSError:
        return 0.0


def _is_runnable(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "R"
    except OSError:
        return False


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
