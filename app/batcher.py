"""Lets many requests share one forward pass.

There is no timer. When the engine is free it takes what is waiting, up to the largest batch worth making; what arrives
meanwhile joins the next one, so a lone request waits for nothing and batches grow with the load (the scheme of
text-embeddings-inference, `core/src/queue.rs`). One thread owns the engine, from opening it on.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from app.engine import Engine, Graph, Outputs, Pixels
from app.errors import Overloaded

log = logging.getLogger(__name__)

E = TypeVar("E", bound=Engine)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Item:
    graph: Graph
    pixels: Pixels  # (height, width, 3)
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Outputs]


class Batcher:
    """A bounded queue of single images in front of an engine. `admit` and `run` belong to the event loop."""

    def __init__(self, *, max_images: int) -> None:
        self._max_images = max_images
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

    def stop(self) -> None:
        """Finish what is waiting, then end the thread. Blocks."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread:
            self._thread.join()

    def refusal(self, images: int = 1) -> Overloaded | None:
        """Why so many images would not be admitted now. Cheap enough to ask before a body is read."""
        if self._admitted + images > self._max_images:
            return Overloaded("Too many images are waiting. Send this request again in a moment.")
        return None

    @contextmanager
    def admit(self, images: int) -> Iterator[None]:
        """Hold places for `images` from before they are decoded until they are answered.

        Raises Overloaded at once when there are not enough: a full queue is an answer, not a wait.
        """
        if refusal := self.refusal(images):
            raise refusal
        self._admitted += images
        try:
            yield
        finally:
            self._admitted -= images

    async def run(self, graph: Graph, pixels: Pixels) -> Outputs:
        """Outputs for one image, without the batch dimension. A caller that is cancelled leaves the queue."""
        loop = asyncio.get_running_loop()
        item = _Item(graph=graph, pixels=pixels, loop=loop, future=loop.create_future())
        with self._changed:
            if self._stopping:
                raise Overloaded("The service is stopping.")
            self._waiting.append(item)
            self._changed.notify()
        return await item.future

    def _work(self, open_engine: Callable[[], E], opened: Future[E]) -> None:
        try:
            engine = open_engine()
        except Exception as error:
            opened.set_exception(error)
            return
        opened.set_result(engine)
        while batch := self._take(engine):
            try:
                outputs = engine.run(batch[0].graph, [item.pixels for item in batch])
            except Exception as error:
                log.exception("a batch of %d failed", len(batch))
                self._answer(batch, error)
            else:
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
