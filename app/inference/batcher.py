"""Lets many requests share one forward pass.

There is no timer. When a runner is free it takes what is waiting, up to the largest batch worth making; what arrives
meanwhile joins the next one, so a lone request waits for nothing and batches grow with the load (the scheme of
text-embeddings-inference, `core/src/queue.rs`). The first runner's thread opens the engine. Where the engine allows
several runs at a time there are more runners: one computes while another hands out answers.
"""

import asyncio
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from app.errors import DeadlineExceeded, Unavailable
from app.inference.contract import Engine, Graph, Outputs, Pixels
from app.inference.queue import Ticket, answer
from app.inference.runner import Runner
from app.lifecycle import STOPPING, Lifecycle
from app.machine import MODEL_NICENESS, yield_by
from app.telemetry.stages import Stages

log = logging.getLogger(__name__)

SELF_TEST_S = 30.0  # without work, after which a blank image is run
BROKEN = "The model fails on every image. The service is about to be restarted."
HUNG = "A forward pass does not come back. The service is about to be restarted."

E = TypeVar("E", bound=Engine)


class Batcher:
    """A queue of single images in front of an engine. `run` belongs to the event loop, where `Admission` bounds it.

    An engine that fails on a blank image, or does not come back, fails the service (`Lifecycle.fail`).
    """

    def __init__(
        self, *, lifecycle: Lifecycle, on_batch: Callable[[Graph, int], None] = lambda graph, images: None
    ) -> None:
        """`on_batch` is called with the size of each batch, in the thread that runs it."""
        self._on_batch = on_batch
        self._lifecycle = lifecycle
        self._waiting: deque[Ticket] = deque()
        self._runners: list[Runner] = []
        self._threads: list[threading.Thread] = []
        self._changed = threading.Condition()
        self._stopping = False

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
        return len(self._waiting)

    def stop(self) -> None:
        """Finish what is waiting, then end the threads. Blocks."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    async def run(
        self, graph: Graph, pixels: Pixels, *, deadline: float = math.inf, stages: Stages | None = None
    ) -> Outputs:
        """Outputs for one image, all finite, without the batch dimension. A caller that is cancelled leaves the queue.

        Raises DeadlineExceeded instead of starting what cannot be ready by `deadline`, InferenceFailed or Overloaded
        where this image fails alone, Unavailable when the service stops or fails.
        """
        loop = asyncio.get_running_loop()
        ticket = Ticket(
            graph=graph,
            pixels=pixels,
            deadline=deadline,
            loop=loop,
            future=loop.create_future(),
            queued=time.perf_counter(),
        )
        with self._changed:
            if self._stopping or not self._lifecycle.live:
                raise Unavailable(self._lifecycle.failure or STOPPING)
            self._waiting.append(ticket)
            self._changed.notify()
        outputs = await ticket.future
        if stages:
            stages.add("queue", ticket.queued, ticket.started)
            stages.add("inference", ticket.started, ticket.ended)
        return outputs

    def check(self) -> None:
        """Fail the service when a run does not come back. To be called now and then, from another thread."""
        if time.monotonic() > min((runner.overdue for runner in self._runners), default=math.inf):
            self._give_up(HUNG)

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
        runner = Runner(engine=engine, take=lambda runner: self._take(runner, engine), on_batch=self._on_batch)
        self._runners.append(runner)
        try:
            runner.serve()
        except BaseException:
            log.exception("the engine is broken")
            self._give_up(BROKEN)

    def _take(self, runner: Runner, engine: Engine) -> list[Ticket] | None:
        """The next batch: the oldest image and those after it that want the same graph."""
        with self._changed:
            while self._lifecycle.live:
                alive = self._unexpired(engine)
                batch = [ticket for ticket in alive if ticket.graph == alive[0].graph]
                runner.taken = batch[: engine.best_batch(batch[0].graph)] if batch else []
                taken = set(runner.taken)
                self._waiting = deque(ticket for ticket in alive if ticket not in taken)
                if batch:
                    return runner.taken
                if self._stopping:
                    return None
                if not self._changed.wait(SELF_TEST_S):
                    return []
            return None

    def _unexpired(self, engine: Engine) -> list[Ticket]:
        """What is waiting and worth running. Whose time would run out meanwhile is told so now."""
        alive = [ticket for ticket in self._waiting if not ticket.future.cancelled()]
        now = time.monotonic()
        late = [ticket for ticket in alive if ticket.deadline < now + engine.expected(ticket.graph, 1)]
        answer(late, [DeadlineExceeded() for _ in late])
        gone = set(late)
        return [ticket for ticket in alive if ticket not in gone]

    def _give_up(self, reason: str) -> None:
        """Fail for good, and tell everyone who waits."""
        self._lifecycle.fail(reason)
        with self._changed:
            waiting = [*(ticket for runner in self._runners for ticket in runner.taken), *self._waiting]
            self._waiting.clear()
            self._changed.notify_all()
        answer(waiting, [Unavailable(reason) for _ in waiting])
