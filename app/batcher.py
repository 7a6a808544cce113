"""Lets many requests share one forward pass.

There is no timer. When the engine is free it takes what is waiting, up to the largest batch worth making; what arrives
meanwhile joins the next one, so a lone request waits for nothing and batches grow with the load (the scheme of
text-embeddings-inference, `core/src/queue.rs`). One thread owns the engine, from opening it on.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from app.engine import Engine, Graph, Outputs, Pixels
from app.errors import Overloaded
from app.stages import Stages

log = logging.getLogger(__name__)

E = TypeVar("E", bound=Engine)


@dataclass(kw_only=True, eq=False)
class _Item:
    graph: Graph
    pixels: Pixels  # (height, width, 3)
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Outputs]
    queued: float  # seconds of perf_counter, like those of the batch that it was in
    started: float = 0.0
    ended: float = 0.0


class Batcher:
    """A bounded queue of single images in front of an engine. `admit` and `run` belong to the event loop."""

    def __init__(self, *, max_images: int, on_batch: Callable[[Graph, int], None] = lambda graph, images: None) -> None:
        """`on_batch` is called by the engine's thread with the size of each batch."""
        self._max_images = max_images
        self._on_batch = on_batch
        self._admitted = 0
        self._waiting: deque[_Item] = deque()
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

    @property
    def admitted(self) -> int:
        """Images that hold a place."""
        return self._admitted

    def stop(self) -> None:
        """Finish what is waiting, then end the thread. Blocks."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread:
            self._thread.join()

    @contextmanager
    def admit(self, images: int) -> Iterator[None]:
        """Hold places for `images` from before they are decoded until they are answered.

        Raises Overloaded at once when there are not enough: a full queue is an answer, not a wait.
        """
        if self._admitted + images > self._max_images:
            raise Overloaded("Too many images are waiting. Send this request again in a moment.")
        self._admitted += images
        try:
            yield
        finally:
            self._admitted -= images

    async def run(self, graph: Graph, pixels: Pixels, stages: Stages | None = None) -> Outputs:
        """Outputs for one image, without the batch dimension. A caller that is cancelled leaves the queue."""
        loop = asyncio.get_running_loop()
        item = _Item(graph=graph, pixels=pixels, loop=loop, future=loop.create_future(), queued=time.perf_counter())
        with self._changed:
            if self._stopping:
                raise Overloaded("The service is stopping.")
            self._waiting.append(item)
            self._changed.notify()
        outputs = await item.future
        if stages:
            stages.add("queue", item.queued, item.started)
            stages.add("inference", item.started, item.ended)
        return outputs

    def _work(self, open_engine: Callable[[], E], opened: Future[E]) -> None:
        try:
            engine = open_engine()
        except Exception as error:
            opened.set_exception(error)
            return
        opened.set_result(engine)
        while batch := self._take(engine):
            self._on_batch(batch[0].graph, len(batch))
            started = time.perf_counter()
            try:
                outputs = engine.run(batch[0].graph, [item.pixels for item in batch])
            except Exception as error:
                log.exception("a batch of %d failed", len(batch))
                self._answer(batch, error)
            else:
                ended = time.perf_counter()
                for item in batch:
                    item.started, item.ended = started, ended
                self._answer(batch, [{name: rows[i] for name, rows in outputs.items()} for i in range(len(batch))])

    def _take(self, engine: Engine) -> list[_Item]:
        """The next batch: the oldest image and those after it that want the same graph; empty when stopped."""
        with self._changed:
            while True:
                alive = [item for item in self._waiting if not item.future.cancelled()]
                batch = [item for item in alive if item.graph == alive[0].graph]
                batch = batch[: engine.best_batch(batch[0].graph)] if batch else []
                taken = set(batch)
                self._waiting = deque(item for item in alive if item not in taken)
                if batch or self._stopping:
                    return batch
                self._changed.wait()

    @staticmethod
    def _answer(batch: list[_Item], answers: list[Outputs] | Exception) -> None:
        def resolve() -> None:
            for i, item in enumerate(batch):
                if item.future.done():
                    continue
                if isinstance(answers, Exception):
                    item.future.set_exception(answers)
                else:
                    item.future.set_result(answers[i])

        try:
            batch[0].loop.call_soon_threadsafe(resolve)
        except RuntimeError:  # the loop is closed: nobody is left to answer
            log.warning("dropped %d answers after shutdown", len(batch))
