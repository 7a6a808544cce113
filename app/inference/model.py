"""The model that is served: an engine, which batches pay in it, and whether it still computes right numbers."""

import logging
import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import product
from threading import Lock
from typing import NamedTuple, get_args

from pydantic import BaseModel

from app.inference.batch_cost import LatencyModel, MemoryModel
from app.inference.engine import Engine, Graph, Images, Outputs
from app.inference.known_answer import KnownImage
from app.machine import resident_memory

log = logging.getLogger(__name__)

GRAPHS: tuple[Graph, ...] = get_args(Graph)
WARM_UP_S = 0.1  # for each graph; batch sizes not measured by then are measured while serving
WARM_UP_RUNS = 2  # of a batch size; the first also allocates memory
ON_A_STREAM = 4  # images of a run where enough wait (measured)
STREAMS_PAY_S = 0.01  # that an image takes on one stream; less, and batches have the higher throughput (measured)
FIRST_RUN_RATIO = 20.0  # a first run so many times as long may still be that of such a model, so a second tells


class Plan(NamedTuple):
    """The next run: how many images, and for one on a stream, beside other such runs, the engine with the streams."""

    images: int
    streamed: Engine | None = None


ALONE = Plan(1)


class BatchLatency(BaseModel):
    """Running mean over the batches of one size, from warm-up on."""

    graph: Graph
    batch: int
    milliseconds: float


class Model:
    """An engine that has given the known answer in every batch size before it answers other images in it."""

    def __init__(
        self,
        *,
        engine: Engine,
        known: KnownImage,
        max_batch: int,
        streams: int = 1,
        reopened: Callable[..., Engine] | None = None,
        weights: int = 0,
    ) -> None:
        """`max_batch` is the most images in a run. Where there are to be `streams`, `engine` is for one image, and
        `reopened` gives one for that many runs at once and a number of `images`. Each has the `weights`, in bytes.
        """
        self.engine = engine
        self.known = known
        self.max_batch = max_batch
        self.streams = streams
        self.images_of_streams = sorted({1, min(ON_A_STREAM, max_batch)})  # that a run on a stream can have
        self._reopened = reopened
        self._weights = weights
        self._memory = MemoryModel(allowed=math.inf, before=0)  # until the warm-up
        self._opening = Lock()
        self._streamed: dict[tuple[Graph, int], Engine] = {}  # by the images of a run; has given the known answer
        self._self_tests = 0
        self._latency = {graph: LatencyModel(max_batch=max_batch, streams=streams) for graph in GRAPHS}
        self._checked: set[tuple[Graph, int]] = set()

    def warm_up(self, max_memory: float) -> None:
        """Run each graph with one image, then larger batches as long as they pay, WARM_UP_S is not over and this
        process keeps within `max_memory` bytes. Every run is of the known image.

        Raises WrongAnswer.
        """
        self._memory = MemoryModel(allowed=max_memory, before=resident_memory())
        for graph in GRAPHS:
            self._measure(graph, 1, runs=1)
        self._choose_streams()
        wanted = self.sizes("explain")[-1]
        self._fit()
        for graph, latency in self._latency.items():
            end = time.perf_counter() + WARM_UP_S - WARM_UP_RUNS * self.expected(graph)
            while time.perf_counter() < end:
                size = 1 if self.streams > 1 else latency.best  # where there are streams, no batches are made
                if latency.settled(size):
                    break
                self._measure(graph, size, runs=WARM_UP_RUNS)
                self._fit()
        self._memory.report(largest=self.sizes("explain")[-1], wanted=wanted)

    def plan(self, graph: Graph, waiting: int, *, others: int = 0, running: int = 0) -> Plan:
        """The next run, when at least one image waits for this graph, `others` for the other, and some runs are under
        way.

        With streams a single image has all cores, and several are run side by side: more than one on a stream where
        enough wait for all that are free. Until the streams of this graph are open, one image follows another. An
        engine that pads nothing gets one of the sizes.
        """
        if self.streams > 1:
            queue, most = waiting + others, self.images_of_streams[-1]
            enough = waiting >= most and queue >= most * (self.streams - running)
            if enough and (engine := self._streamed.get((graph, most))):
                return Plan(most, engine)
            return Plan(1, self._streamed.get((graph, 1)) if queue + running > 1 else None)
        latency = self._latency[graph]
        images = min(waiting, latency.best)
        return Plan(images if self.engine.pads else max(size for size in latency.sizes if size <= images))

    def run(self, graph: Graph, images: Images, *, streamed: Engine | None = None) -> Outputs:
        """Outputs for `images`, each uint8 (height, width, 3), as planned. As many threads as there are streams may
        call it at once, each `streamed`.

        The first run of a size is of the known image, unless the engine pads and has checked all sizes itself. Raises
        WrongAnswer if that gives another answer.
        """
        if streamed:
            with self._timed(graph, self.streams * len(images)):
                return streamed.run(graph, images)
        if not self.engine.pads and (graph, len(images)) not in self._checked:
            self.check(graph, len(images))
        with self._timed(graph, len(images)):
            return self.engine.run(graph, images)

    def check(self, graph: Graph, size: int) -> None:
        """Measure a batch of this size that consists of the known image. Raises WrongAnswer."""
        images = self.known.images(size)
        with self._timed(graph, size):
            outputs = self.engine.run(graph, images)
        self._compare(graph, outputs)
        self._checked.add((graph, size))

    def open_streams(self, graph: Graph, images: int) -> bool:
        """Open streams for so many images, if there is memory, and check the known image on each with this graph. Where
        that fails for single images, images are run one by one from now on. Whether the streams are open.
        """
        assert self._reopened
        with self._opening:
            if self.streams == 1 or images not in self.images_of_streams:
                return False  # it has failed with the other graph
            if not self._has_room_for_streams(images):
                log.warning("memory: streams of the graph %s do not fit, with %d images per run", graph, images)
                return False
            try:
                engine = self._opened(images) or self._reopened(streams=self.streams, images=images)
                with ThreadPoolExecutor(self.streams) as threads:
                    known = [self.known.images(images)] * self.streams
                    for outputs in threads.map(partial(engine.run, graph), known):
                        self._compare(graph, outputs)
            except Exception as error:
                log.warning("the graph %s has no streams with %d images per run: %s", graph, images, error)
                self._close_streams(images)
                return False
            self._streamed[graph, images] = engine
            return True

    def next_self_test(self) -> tuple[Graph, Plan]:
        """A graph, and a way in which it is run: all of them in turn. Belongs to one thread at a time."""
        tests = [(graph, ALONE) for graph in GRAPHS]
        tests += [(graph, Plan(images, engine)) for (graph, images), engine in list(self._streamed.items())]
        self._self_tests += 1
        return tests[self._self_tests % len(tests)]

    def probe(self, graph: Graph, plan: Plan) -> None:
        """Check the known image once, as planned for other images. Raises WrongAnswer.

        After a pause the processor's caches are cold, so the time is a measurement only if it is less than was
        expected. Then it replaces that: after a slow while, too high an expectation would refuse every image.
        """
        start = time.perf_counter()
        self._compare(graph, (plan.streamed or self.engine).run(graph, self.known.images(plan.images)))
        if not plan.streamed:
            self._latency[graph].lower(plan.images, time.perf_counter() - start)

    def best_batch(self, graph: Graph) -> int:
        """Most images worth running at once."""
        if self.streams > 1:
            return self.streams * self.images_of_streams[-1]
        return self._latency[graph].best

    def allows(self, graph: Graph, plan: Plan) -> bool:
        """Whether this is still to be run as planned: memory may have been too short for it since."""
        if plan.streamed:
            return (graph, plan.images) in self._streamed
        return plan.images <= self.sizes(graph)[-1]

    def expected(self, graph: Graph, plan: Plan = ALONE) -> float:
        """Seconds that a run will take, with runs on all streams beside one on a stream. As far as is known: 0 where
        nothing is.
        """
        return self._latency[graph].expected(plan.images * (self.streams if plan.streamed else 1))

    def forbid(self, graph: Graph, images: int) -> int:
        """Make no batch of this size or larger any more, on streams or off. The largest that is left, 1 at least."""
        if images > 1:
            self._close_streams(images)
        largest = self._latency[graph].forbid(images)
        self.engine.forget(graph, largest)
        return largest

    def sizes(self, graph: Graph) -> list[int]:
        """Batch sizes that are allowed, the smallest first."""
        return self._latency[graph].sizes

    def latency(self) -> list[BatchLatency]:
        """What has been measured so far, in the warm-up and while serving."""
        return [
            BatchLatency(graph=graph, batch=size, milliseconds=round(1000 * seconds, 3))
            for graph, latency in self._latency.items()
            for size, seconds in latency.seconds.items()
        ]

    def _compare(self, graph: Graph, outputs: Outputs) -> None:
        self.known.check(graph, outputs, provider=self.engine.provider)

    @contextmanager
    def _timed(self, graph: Graph, at_once: int) -> Iterator[None]:
        """A run that shares the cores with others, of so many images in all. One that raises is no measurement."""
        start = time.perf_counter()
        yield
        self._latency[graph].add(at_once, time.perf_counter() - start)

    def _measure(self, graph: Graph, size: int, *, runs: int) -> None:
        before = resident_memory()
        for _ in range(runs):
            self.check(graph, size)
        self._memory.add(graph, size, resident_memory() - before)

    def _choose_streams(self) -> None:
        """Have streams, or batches on all cores, not both: beside a run on a stream nothing runs on all cores."""
        if self.streams == 1:
            return
        assert self._reopened
        if self._on_a_stream() < FIRST_RUN_RATIO * STREAMS_PAY_S:
            self._measure("classify", 1, runs=1)
        if self._on_a_stream() < STREAMS_PAY_S:
            self.streams = 1
            del self.engine  # or its weights would be in memory twice
            self.engine = self._reopened()
            for graph in GRAPHS:
                self.probe(graph, ALONE)
            return
        for latency in self._latency.values():
            latency.forbid(self.streams + 1)

    def _close_streams(self, images: int) -> None:
        """Close those for so many images or more. Runs under way keep their engine. Without streams for one image, one
        follows another, which is what the model's own engine is for.
        """
        closed = [size for size in self.images_of_streams if size >= images]
        self.images_of_streams = [size for size in self.images_of_streams if size < images] or [1]
        for size, graph in product(closed, GRAPHS):
            self._streamed.pop((graph, size), None)
        if images == 1:
            self.streams = 1
            for latency in self._latency.values():
                latency.forbid(2)

    def _opened(self, images: int) -> Engine | None:
        """The engine with streams for so many images, if it is open for the other graph."""
        return next((self._streamed[key] for graph in GRAPHS if (key := (graph, images)) in self._streamed), None)

    def _on_a_stream(self) -> float:
        """Seconds that an image takes on one stream, which has its share of the cores."""
        return self.streams * min(self.expected(graph) for graph in GRAPHS)

    def _has_room_for_streams(self, images: int) -> bool:
        weights = 0 if self._opened(images) else self._weights
        return self._memory.holds_streams(self.streams * images, now=resident_memory(), weights=weights)

    def _fit(self) -> None:
        """Forbid batches, and streams, that do not fit into the memory. A single image is always allowed."""
        if self.streams > 1 and not self._has_room_for_streams(1):
            self._close_streams(1)
        if too_large := [size for size in self.sizes("explain")[1:] if not self._memory.fits(size)]:
            for graph in GRAPHS:
                self.forbid(graph, too_large[0])
