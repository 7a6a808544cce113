"""Engines with streams: several runs side by side, each on its share of the cores."""

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import InitVar, dataclass
from functools import partial
from itertools import product
from threading import Lock

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
        self._opening = Lock()
        self._engines: dict[tuple[Graph, int], Engine] = {}  # by the images per run

    def plan(self, graph: Graph, images: int) -> Plan | None:
        """A run of so many images on a stream, if there are streams for it."""
        engine = self._engines.get((graph, images))
        return Plan(graph, images, engine) if engine else None

    def plans(self) -> list[Plan]:
        """One for each graph and number of images for which there are streams."""
        return [Plan(graph, images, engine) for (graph, images), engine in list(self._engines.items())]

    def open(self, graph: Graph, images: int, *, memory: MemoryModel) -> bool:
        """Open streams for so many images, if there is memory, and check the known image on each with this graph. Where
        that fails, they are closed. Whether they are open.
        """
        assert self.open_engine
        with self._opening:
            if self.count == 1 or images not in self.images:
                return False  # it has failed with the other graph
            if not self.has_room(images, memory=memory):
                log.warning("memory: streams of the graph %s do not fit, with %d images per run", graph, images)
                return False
            try:
                engine = self._of_other_graph(images) or self.open_engine(streams=self.count, images=images)
                with ThreadPoolExecutor(self.count) as threads:
                    run = partial(engine.run, graph, *self.known.inputs(images))
                    for outputs in threads.map(lambda _: run(), range(self.count)):
                        self.known.check(graph, outputs, provider=engine.provider)
            except Exception as error:
                log.warning("the graph %s has no streams with %d images per run: %s", graph, images, error)
                self.close(images)
                return False
            self._engines[graph, images] = engine
            return True

    def close(self, images: int) -> None:
        """Close those for so many images or more: all, where it is one. Runs under way keep their engine."""
        closed = [size for size in self.images if size >= images]
        self.images = [size for size in self.images if size < images] or [1]
        for graph, size in product(GRAPHS, closed):
            self._engines.pop((graph, size), None)
        if images == 1:
            self.count = 1

    def has_room(self, images: int, *, memory: MemoryModel) -> bool:
        weights = 0 if self._of_other_graph(images) else self.weights
        return memory.holds_streams(self.count * images, now=resident_memory(), weights=weights)

    def _of_other_graph(self, images: int) -> Engine | None:
        return next((self._engines[graph, images] for graph in GRAPHS if (graph, images) in self._engines), None)
