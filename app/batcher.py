"""Lets many requests share one forward pass.

There is no timer. When the engine is free it takes what is waiting, up to the largest batch worth making; what arrives
meanwhile joins the next one, so a lone request waits for nothing and batches grow with the load (the scheme of
text-embeddings-inference, `core/src/queue.rs`). One thread owns the engine, from opening it on.

A batch that fails is made again: in smaller ones where memory was short, else image by image, so that only a guilty
image fails. After an image has failed alone, and when nothing has been asked for a while, a blank image has to pass: an
engine that fails on that fails on all, and so does the service (`Lifecycle.fail`).
"""

import asyncio
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from app.engine import Engine, Graph, Outputs, Pixels
from app.errors import DeadlineExceeded, InferenceFailed, Overloaded, ServiceError, Unavailable
from app.faults import fault_of
from app.lifecycle import STOPPING, Lifecycle
from app.stages import Stages

log = logging.getLogger(__name__)

SELF_TEST_S = 30.0  # without work, after which a blank image is run
STUCK_S = 60.0  # a run that takes longer, and STUCK times longer than expected, will not come back
STUCK = 10.0
BROKEN = "The model fails on every image. The service is about to be restarted."
HUNG = "A forward pass does not come back. The service is about to be restarted."

E = TypeVar("E", bound=Engine)


@dataclass(kw_only=True, eq=False)
class _Item:
    graph: Graph
    pixels: Pixels  # (height, width, 3)
    deadline: float  # seconds of time.monotonic
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Outputs]
    queued: float  # seconds of perf_counter, like those of the batch that it was in
    started: float = 0.0
    ended: float = 0.0


class _BrokenEngineError(Exception):
    """The engine will not work again in this process."""


class Batcher:
    """A queue of single images in front of an engine. `run` belongs to the event loop, where `Admission` bounds it."""

    def __init__(
        self, *, lifecycle: Lifecycle, on_batch: Callable[[Graph, int], None] = lambda graph, images: None
    ) -> None:
        """`on_batch` is called by the engine's thread with the size of each batch."""
        self._on_batch = on_batch
        self._lifecycle = lifecycle
        self._waiting: deque[_Item] = deque()
        self._taken: list[_Item] = []
        self._overdue = math.inf  # when a run is given up, in seconds of time.monotonic
        self._changed = threading.Condition()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def start(self, open_engine: Callable[[], E]) -> E:
        """Open the engine in the thread that will run it, and wait for it. Raises what `open_engine` raises."""
        opened: Future[E] = Future()
        self._thread = threading.Thread(target=self._work, args=(open_engine, opened), name="engine", daemon=True)
        self._thread.start()
        return opened.result()

    @property
    def waiting(self) -> int:
        """Images that no batch has taken yet."""
        return len(self._waiting)

    def stop(self) -> None:
        """Finish what is waiting, then end the thread. Blocks."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread:
            self._thread.join()

    async def run(
        self, graph: Graph, pixels: Pixels, *, deadline: float = math.inf, stages: Stages | None = None
    ) -> Outputs:
        """Outputs for one image, all finite, without the batch dimension. A caller that is cancelled leaves the queue.

        Raises DeadlineExceeded instead of starting what cannot be ready by `deadline`, InferenceFailed or Overloaded
        where this image fails alone, Unavailable when the service stops or fails.
        """
        loop = asyncio.get_running_loop()
        item = _Item(
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
            self._waiting.append(item)
            self._changed.notify()
        outputs = await item.future
        if stages:
            stages.add("queue", item.queued, item.started)
            stages.add("inference", item.started, item.ended)
        return outputs

    def check(self) -> None:
        """Fail the service when a run does not come back. To be called now and then, from another thread."""
        if time.monotonic() > self._overdue:
            self._give_up(HUNG)

    def _work(self, open_engine: Callable[[], E], opened: Future[E]) -> None:
        try:
            engine = open_engine()
        except Exception as error:
            opened.set_exception(error)
            return
        opened.set_result(engine)
        try:
            self._serve(engine)
        except BaseException:
            log.exception("the engine is broken")
            self._give_up(BROKEN)

    def _serve(self, engine: Engine) -> None:
        while self._lifecycle.live:
            if batch := self._take(engine):
                self._process(engine, batch)
            elif self._stopping:
                return
            else:
                self._probe(engine, "explain")

    def _take(self, engine: Engine) -> list[_Item]:
        """The next batch: the oldest image and those after it that want the same graph.

        Empty when stopped, or when nothing has come for a while.
        """
        with self._changed:
            while True:
                alive = self._unexpired(engine)
                batch = [item for item in alive if item.graph == alive[0].graph]
                self._taken = batch[: engine.best_batch(batch[0].graph)] if batch else []
                taken = set(self._taken)
                self._waiting = deque(item for item in alive if item not in taken)
                if batch or self._stopping or not self._changed.wait(SELF_TEST_S):
                    return self._taken

    def _unexpired(self, engine: Engine) -> list[_Item]:
        """What is waiting and worth running. Whose time would run out meanwhile is told so now."""
        alive = [item for item in self._waiting if not item.future.cancelled()]
        now = time.monotonic()
        late = [item for item in alive if item.deadline < now + engine.expected(item.graph, 1)]
        _answer(late, [DeadlineExceeded() for _ in late])
        gone = set(late)
        return [item for item in alive if item not in gone]

    def _process(self, engine: Engine, batch: list[_Item]) -> None:
        """Answer all of `batch`. Raises when the engine is broken."""
        batch = [item for item in batch if not item.future.cancelled()]
        if not batch:
            return
        graph = batch[0].graph
        self._on_batch(graph, len(batch))
        started = time.perf_counter()
        try:
            with self._watched(engine, graph, len(batch)):
                outputs = engine.run(graph, [item.pixels for item in batch])
        except Exception as error:
            self._process_again(engine, batch, error)
            return
        ended = time.perf_counter()
        for item in batch:
            item.started, item.ended = started, ended
        answers = [{name: rows[i] for name, rows in outputs.items()} for i in range(len(batch))]
        sound = [_finite(answer) for answer in answers]
        _answer(batch, [answer if ok else InferenceFailed() for answer, ok in zip(answers, sound, strict=True)])
        if not all(sound):
            log.error("numbers that are not finite for %d of %d images", sound.count(False), len(batch))
            self._probe(engine, graph)

    def _process_again(self, engine: Engine, batch: list[_Item], error: Exception) -> None:
        graph, fault = batch[0].graph, fault_of(error)
        log.error("a batch of %d failed (%s)", len(batch), fault, exc_info=error)
        if fault == "fatal":
            raise _BrokenEngineError from error
        if len(batch) == 1:
            lone = Overloaded("There is not enough memory now. Send this request again in a moment.")
            _answer(batch, [lone if fault == "memory" else InferenceFailed()])
            self._probe(engine, graph)
            return
        size = engine.forbid(graph, len(batch)) if fault == "memory" else 1
        for start in range(0, len(batch), size):
            self._process(engine, batch[start : start + size])

    def _probe(self, engine: Engine, graph: Graph) -> None:
        """Raises when a blank image fails."""
        with self._watched(engine, graph, 1):
            outputs = engine.probe(graph)
        if not _finite(outputs):
            raise _BrokenEngineError("numbers that are not finite for a blank image")

    @contextmanager
    def _watched(self, engine: Engine, graph: Graph, images: int) -> Iterator[None]:
        self._overdue = time.monotonic() + max(STUCK_S, STUCK * engine.expected(graph, images))
        try:
            yield
        finally:
            self._overdue = math.inf

    def _give_up(self, reason: str) -> None:
        """Fail for good, and tell everyone who waits."""
        self._lifecycle.fail(reason)
        with self._changed:
            waiting = [*self._taken, *self._waiting]
            self._waiting.clear()
        _answer(waiting, [Unavailable(reason) for _ in waiting])


def _finite(outputs: Outputs) -> bool:
    return all(np.isfinite(rows).all() for rows in outputs.values())


def _answer(items: Sequence[_Item], answers: Sequence[Outputs | ServiceError]) -> None:
    """Resolve the futures of `items`, in their event loop."""

    def resolve() -> None:
        for item, answer in zip(items, answers, strict=True):
            if item.future.done():
                continue
            if isinstance(answer, ServiceError):
                item.future.set_exception(answer)
            else:
                item.future.set_result(answer)

    if not items:
        return
    try:
        items[0].loop.call_soon_threadsafe(resolve)
    except RuntimeError:  # the loop is closed: nobody is left to answer
        log.warning("dropped %d answers after shutdown", len(items))
