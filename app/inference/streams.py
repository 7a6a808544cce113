"""Engines with streams: several runs side by side, each on its share of the cores."""

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import InitVar, dataclass
from functools import partial

from app.inference.batch_cost import MemoryModel
from app.inference.engine import GRAPHS, Engine, Graph, Plan
from app.inference.known_answer import KnownImage
from app.machine import resident_memory

log = logging.getLogger(__name__)

ON_A_STREAM = 4  # images of a run where enough wait (measured)


@dataclass(kw_only=True, eq=False)
class Streams:
    """Those of one model. A stream answers after the known image has been checked on it. Any thread may call this."""

    count: int  # of runs at once; 1: there are no streams
    max_batch: InitVar[int]
    known: KnownImage
    open_engine: Callable[..., Engine] | None  # for so many `streams`, and a number of `images` per run
    weights: int  # bytes that each engine holds

    def __post_init__(self, max_batch: int) -> None:
        self.images = sorted({1, min(ON_A_STREAM, max_batch)})  # per run
        self._engines: dict[int, Engine] = {}  # by the images per run

    def plan(self, graph: Graph, images: int) -> Plan | None:
        """A run of so many images on a stream, if there are streams for it."""
        engine = self._engines.get(images)
        return Plan(graph, images, engine) if engine else None

    def plans(self) -> list[Plan]:
        """One for each graph and number of images for which there are streams."""
        return [Plan(graph, images, engine) for images, engine in list(self._engines.items()) for graph in GRAPHS]

    def open(self, images: int, *, memory: MemoryModel) -> bool:
        """Open streams for so many images, if there is memory, and check the known image on each with each graph. Where
        that fails, they are closed. Whether they are open.
        """
        assert self.open_engine
        if self.count == 1 or images not in self.images:
            return False  # closed, because memory was short
        if not self.has_room(images, memory=memory):
            log.warning("memory: streams do not fit, with %d images per run", images)
            return False
        try:
            engine = self.open_engine(streams=self.count, images=images)
            known = [self.known.images(images)] * self.count
            with ThreadPoolExecutor(self.count) as threads:
                for graph in GRAPHS:
                    for outputs in threads.map(partial(engine.run, graph), known):
                        self.known.check(graph, outputs, provider=engine.provider)
        except Exception as error:
            log.warning("there are no streams with %d images per run: %s", images, error)
            self.close(images)
            return False
        self._engines[images] = engine
        return True

    def close(self, images: int) -> None:
        """Close those for so many images or more: all, where it is one. Runs under way keep their engine."""
        closed = [size for size in self.images if size >= images]
        self.images = [size for size in self.images if size < images] or [1]
        for size in closed:
            self._engines.pop(size, None)
        if images == 1:
            self.count = 1

    def has_room(self, images: int, *, memory: MemoryModel) -> bool:
        return memory.holds_streams(self.count * images, now=resident_memory(), weights=self.weights)
