"""Many requests share one forward pass.

There is no timer. A free runner takes what is waiting, up to the largest batch that pays. Images that arrive during a
run join the next one. So a single request runs at once, and batches grow with the load (the scheme of
text-embeddings-inference, `core/src/queue.rs`). The engine is opened in the first runner's thread. An engine that
allows several runs at a time gets as many runners: one computes while another hands out answers.
"""

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from app.inference.contract import Engine, Graph, Outputs, Pixels
from app.inference.known_answer import WrongAnswer
from app.inference.queue import Queue, Ticket
from app.inference.runner import Runner
from app.lifecycle import Lifecycle
from app.machine import MODEL_NICENESS, yield_by
from app.telemetry.stages import Stages

log = logging.getLogger(__name__)

WATCH_S = 1.0
BROKEN = "The model fails on every image. The service is about to be restarted."
WRONG = "The model computes wrong numbers. The service is about to be restarted."
HUNG = "A forward pass hangs. The service is about to be restarted."

E = TypeVar("E", bound=Engine)


class Batcher:
    """An engine behind a queue of single images. `run` belongs to the event loop; `Admission` bounds the queue there.

    An engine that fails on the known image, computes wrong numbers or hangs fails the service (`Lifecycle.fail`).
    """

    def __init__(
        self, *, lifecycle: Lifecycle, on_batch: Callable[[Graph, int], None] = lambda graph, images: None
    ) -> None:
        """`on_batch` is called with the size of each batch, in the thread that runs it."""
        self._lifecycle = lifecycle
        self._on_batch = on_batch
        self._queue = Queue()
        self._runners: list[Runner] = []
        self._threads: list[threading.Thread] = []

    def start(self, open_engine: Callable[[], E]) -> E:
        """Open the engine in a thread that will run it, and wait for it. Raises what `open_engine` raises."""
        opened: Future[E] = Future()
        self._start_thread(self._open, open_engine, opened)
        engine = opened.result()
        for _ in range(engine.concurrency - 1):
            self._start_thread(self._serve, engine)
        return engine

    @property
    def waiting(self) -> int:
        """Images that no batch has taken yet."""
        return self._queue.waiting

    def stop(self) -> None:
        """Finish what is waiting, then end the threads. Blocks."""
        self._queue.close()
        for thread in self._threads:
            thread.join()

    async def run(
        self, graph: Graph, pixels: Pixels, *, deadline: float = math.inf, stages: Stages | None = None
    ) -> Outputs:
        """Outputs for one image, all finite, without the batch dimension. `pixels` is uint8 (height, width, 3).

        `deadline` is in seconds of time.monotonic. A caller that is cancelled leaves the queue. Raises DeadlineExceeded
        instead of starting a run that cannot end by `deadline`, InferenceFailed or Overloaded when this image fails
        alone, Unavailable when the service stops or fails.
        """
        future: asyncio.Future[Outputs] = asyncio.get_running_loop().create_future()
        ticket = Ticket(graph=graph, pixels=pixels, deadline=deadline, future=future, queued=time.perf_counter())
        self._queue.put(ticket)
        outputs = await future
        if stages:
            stages.add("queue", ticket.queued, ticket.started)
            stages.add("inference", ticket.started, ticket.ended)
        return outputs

    def check(self) -> None:
        """Fail the service if a run hangs. To be called every WATCH_S, from a thread that runs no model."""
        if any(runner.hangs(WATCH_S) for runner in self._runners):
            self._fail(HUNG)

    async def watch(self) -> None:
        """Check until cancelled."""
        while True:
            await asyncio.sleep(WATCH_S)
            self.check()

    def _start_thread(self, work: Callable[..., None], *arguments: Any) -> None:
        def yielding() -> None:
            yield_by(MODEL_NICENESS)
            work(*arguments)

        thread = threading.Thread(target=yielding, name="engine", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _open(self, open_engine: Callable[[], E], opened: Future[E]) -> None:
        try:
            engine = open_engine()
        except Exception as error:
            opened.set_exception(error)
            return
        opened.set_result(engine)
        self._serve(engine)

    def _serve(self, engine: Engine) -> None:
        runner = Runner(engine=engine, queue=self._queue, on_batch=self._on_batch)
        self._runners.append(runner)
        try:
            runner.serve()
        except WrongAnswer as wrong:
            log.critical("%s", wrong)
            self._fail(WRONG)
        except BaseException:
            log.exception("the engine is broken")
            self._fail(BROKEN)

    def _fail(self, reason: str) -> None:
        self._lifecycle.fail(reason)  # first: a client that gets 503 finds /livez failed
        self._queue.fail(reason)
