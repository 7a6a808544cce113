"""Worker processes that decode and can be killed: a crash or a hang costs the image that caused it and no other.

The pool is our own, not pebble's or that of concurrent.futures, for three reasons. It never unpickles what a worker
sends, because an image may have taken the worker over. A small server forks the workers, and not this process. And an
exchange takes a few system calls on the event loop and no thread.

The server is our own, not multiprocessing's, because that inherits the environment with its keys, and it and its
resource tracker go on when the pool has ended.
"""

import asyncio
import mmap
import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from app.errors import ServiceError
from app.images.fork_server import ANSWER, REQUEST, Work
from app.images.turns import Turns
from app.images.upload import Buffer, Upload
from app.images.worker import ForkServer, Worker

T = TypeVar("T")

MAX_SENT_AT_ONCE = 1000  # pieces; IOV_MAX of Linux is 1024
MAX_ON_HEAP_BYTES = 2**20  # of an answer: a larger bytearray takes the event loop milliseconds to fill with zeros
WALL_S = 60.0  # until a worker that neither computes nor answers is killed: its own limit counts processor time alone


class WorkerFailed(Exception):
    """A worker ended, or sent no answer, in the middle of a request. Another takes its place."""


class WorkerKilled(WorkerFailed):
    """A worker was ended or stopped from outside: by the kernel when memory was short, by a person, or with its fork
    server.
    """


class WorkerTimedOut(WorkerFailed):
    """A worker took more processor time than the pixels of the image are worth."""


@dataclass(frozen=True, kw_only=True)
class Question(Generic[T]):
    """What a worker is asked about an upload."""

    kind: int  # an argument of `Work`
    upload: Upload
    pixels: int  # that it claims to have, and that its time and its memory are measured by
    max_answer_bytes: int
    unpack: Callable[[Buffer], T]  # raises ServiceError for a refusal


class Processes(NamedTuple):
    """Numbers of processes; 0 where there is none yet, or none any more."""

    fork_server: int
    workers: tuple[int, ...]

    @property
    def all(self) -> tuple[int, ...]:
        return tuple(filter(None, (self.fork_server, *self.workers)))


@dataclass(kw_only=True, eq=False)
class WorkerPool:
    """Processes that each do one request at a time. `start` and `stop` block; `run` belongs to the event loop."""

    work: Work  # pickled, and sent to the fork server
    turns: Turns
    max_pixels: int  # the most of any question

    def __post_init__(self) -> None:
        self._workers = [Worker() for _ in range(self.turns.workers)]
        self._idle = list(self._workers)
        self._fork_server: ForkServer | None = None
        self._starting = threading.Lock()
        self._stopped = False

    def start(self) -> None:
        """Returns when the workers are there. Raises OSError."""
        for worker in self._workers:
            self._renew(worker)

    def stop(self) -> None:
        """Requests in work are dropped."""
        with self._starting:
            self._stopped = True  # a worker that ends now is not replaced
        for worker in self._workers:
            if worker.connection:
                worker.kill()
        if self._fork_server:
            self._fork_server.stop()
        for worker in self._workers:
            worker.close()

    def processes(self) -> Processes:
        fork_server = self._fork_server.process if self._fork_server else 0
        return Processes(fork_server, tuple(worker.process for worker in self._workers))

    async def run(self, question: Question[T]) -> T:
        """What a worker answers.

        A caller that is cancelled while it waits leaves the queue; one that is cancelled later loses its answer.
        Raises what `unpack` raises, WorkerFailed, WorkerKilled or WorkerTimedOut, and OSError when no process can be
        started.
        """
        await self.turns.enter(question.pixels)
        worker = self._idle.pop()
        exchange = asyncio.ensure_future(self._exchange(worker, question))
        exchange.add_done_callback(partial(self._finished, worker, question.pixels))
        try:
            return await asyncio.shield(exchange)
        finally:
            del exchange  # its exception refers to this frame: a cycle would keep the upload

    def _finished(self, worker: Worker, pixels: int, exchange: asyncio.Future[T]) -> None:
        if not exchange.cancelled():
            exchange.exception()  # marks it as seen, even if the caller has left
        if worker.connection:
            self._idle.append(worker)
        else:
            self._idle.insert(0, worker)  # the last to be used: where none can be forked, it would fail at once
        self.turns.leave(pixels)

    async def _exchange(self, worker: Worker, question: Question[T]) -> T:
        """The worker's answer. A worker whose answer is garbled is ended."""
        if not worker.is_ready():
            await asyncio.get_running_loop().run_in_executor(None, self._renew, worker)
        late = asyncio.get_running_loop().call_later(WALL_S, worker.kill)
        try:
            return await self._ask(worker, question)
        except ServiceError:
            raise  # an answer about the upload
        except OSError as error:
            worker.close()
            raise await self._why_it_ended(worker) from error
        except BaseException:
            worker.kill()
            worker.close()
            raise
        finally:
            late.cancel()

    async def _ask(self, worker: Worker, question: Question[T]) -> T:
        """Raises what `unpack` raises, OSError and WorkerFailed."""
        assert worker.connection
        header = REQUEST.pack(question.kind, len(question.upload), question.pixels)
        await _send(worker.connection, header, question.upload)
        (size,) = ANSWER.unpack(await _receive(worker.connection, ANSWER.size))
        if size > question.max_answer_bytes:
            raise WorkerFailed("the answer is too large")
        return question.unpack(await _receive(worker.connection, size))

    async def _why_it_ended(self, worker: Worker) -> WorkerFailed:
        """A new process takes its place, because the exit code is known only then."""
        try:
            exit_code = await asyncio.get_running_loop().run_in_executor(None, self._renew, worker)
        except OSError:  # its fork server has ended, or cannot fork
            return WorkerKilled()
        known = {-signal.SIGKILL: WorkerKilled, -signal.SIGPROF: WorkerTimedOut}
        return known.get(exit_code, WorkerFailed)(f"exit code {exit_code}")

    def _renew(self, worker: Worker) -> int:
        fork_server = self._living_fork_server()
        try:
            return fork_server.renew(worker)
        except ConnectionError:  # it has ended since
            fork_server.stop()
            return self._living_fork_server().renew(worker)

    def _living_fork_server(self) -> ForkServer:
        with self._starting:
            if self._stopped:
                raise ConnectionAbortedError("the pool is stopped")
            if self._fork_server is None or not self._fork_server.is_alive():
                if self._fork_server:
                    self._fork_server.stop()
                self._fork_server = ForkServer(work=self.work, max_pixels=self.max_pixels)
                for each in self._workers:
                    each.process = 0  # ended with their fork server
            return self._fork_server


async def _send(connection: socket.socket, header: bytes, upload: Upload) -> None:
    """With one system call where all of it fits into the socket, and without a copy."""
    sent = connection.sendmsg([header, *upload.pieces[:MAX_SENT_AT_ONCE]])  # nothing else is there: the header fits
    for piece in upload.part(sent - len(header), len(upload)).pieces:
        await asyncio.get_running_loop().sock_sendall(connection, piece)


async def _receive(connection: socket.socket, size: int) -> memoryview:
    """Asks the event loop only where it has to wait, for that takes ten system calls."""
    answer = view = memoryview(bytearray(size) if size <= MAX_ON_HEAP_BYTES else mmap.mmap(-1, size))
    while view:
        try:
            received = connection.recv_into(view)
        except BlockingIOError:
            received = await asyncio.get_running_loop().sock_recv_into(connection, view)
        if not received:
            raise ConnectionError("the worker has ended")
        view = view[received:]
        if view:
            await asyncio.sleep(0)  # a large answer may be there for milliseconds without a break
    return answer
