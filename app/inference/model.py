"""The model that is served: an engine, which batches pay in it, and whether it still computes right numbers."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from pydantic import BaseModel

from app.inference.batch_cost import LatencyModel, MemoryModel
from app.inference.engine import GRAPHS, Classes, Engine, Graph, Images, Outputs, Plan
from app.inference.known_answer import KnownImage
from app.inference.streams import STREAMED, Streams
from app.machine import resident_memory

WARM_UP_S = 0.1  # for each graph; batch sizes not measured by then are measured while serving
WARM_UP_RUNS = 2  # of a batch size; the first also allocates memory
STREAMS_PAY_S = 0.01  # that an image takes on one stream; less, and batches have the higher throughput (measured)
FIRST_RUN_RATIO = 20.0  # a first run so many times as long may still be that of such a model, so a second tells


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
        open_engine: Callable[[], Engine] | None = None,
        weights: int = 0,
    ) -> None:
        """`max_batch` is the most images in a run. Where there are to be `streams`, `open_engine` gives another engine,
        for so many runs of one image. Each has the `weights`, in bytes.
        """
        self.engine = engine
        self.known = known
        self.max_batch = max_batch
        self.streams = Streams(count=streams, known=known, open_engine=open_engine, weights=weights)
        self._memory = MemoryModel(allowed=math.inf, before=0)  # until the warm-up
        self._latency = {graph: LatencyModel(max_batch=max_batch, streams=streams) for graph in GRAPHS}
        self._checked: set[tuple[Graph, int]] = set()
        self._self_tests = 0

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
            end = time.perf_counter() + WARM_UP_S - WARM_UP_RUNS * self.expected(Plan(graph, 1))
            while time.perf_counter() < end:
                size = 1 if self.streams.count > 1 else latency.best  # where there are streams, no batches are made
                if latency.settled(size):
                    break
                self._measure(graph, size, runs=WARM_UP_RUNS)
                self._fit()
        self._memory.report(largest=self.sizes("explain")[-1], wanted=wanted)

    def plan(self, graph: Graph, waiting: int, *, running: Sequence[Plan] = ()) -> Plan | None:
        """The next run, when at least one image waits for this graph. None while it has to wait for a run under way: on
        all cores a run is alone.

        With streams a single image has all cores, and several that wait for labels are run side by side. Until the
        streams are open, one image follows another. An engine that pads nothing gets one of the sizes.
        """
        if not all(run.stream_engine for run in running):
            return None
        several = waiting + len(running) > 1  # there is something to share the cores with
        if several and graph == STREAMED and (plan := self.streams.plan()):
            return plan
        return None if running else self._alone(graph, waiting)

    def split(self, plan: Plan, images: int) -> Plan:
        """A run of at most so many images in place of `plan`: some have left, or memory was short."""
        return self._alone(plan.graph, images)

    def run(self, plan: Plan, images: Images, classes: Classes = ()) -> Outputs:
        """Outputs for as many `images` as planned, each uint8 (height, width, 3), and the `classes` to explain. As
        many threads as there are streams may call it at once, each with a run on a stream.

        The first run of a size is of the known image, unless the engine pads and has checked all sizes itself. Raises
        WrongAnswer if that gives another answer.
        """
        size = (plan.graph, len(images))
        if not (plan.stream_engine or self.engine.pads_batches or size in self._checked):
            self.check(*size)
        with self._timed(plan):
            return (plan.stream_engine or self.engine).run(plan.graph, images, classes)

    def check(self, graph: Graph, size: int) -> None:
        """Measure a batch of this size that consists of the known image. Raises WrongAnswer."""
        inputs = self.known.inputs(size)
        with self._timed(Plan(graph, size)):
            outputs = self.engine.run(graph, *inputs)
        self.known.check(graph, outputs, provider=self.engine.provider)
        self._checked.add((graph, size))

    def open_streams(self) -> None:
        """As `Streams.open` does. Where that fails, images are run one by one from now on."""
        if not self.streams.open(memory=self._memory):
            self._do_without_streams()

    def next_self_test(self, *, running: Sequence[Plan] = ()) -> Plan | None:
        """A run of the known image: each graph in each way in which images are run, in turn. None while it has to wait
        for a run under way, as in `plan`. Belongs to one thread at a time.
        """
        tests = [plan] if (plan := self.streams.plan()) else []
        if not running:
            tests += [Plan(graph, 1) for graph in GRAPHS]
        if not tests or not all(run.stream_engine for run in running):
            return None
        self._self_tests += 1
        return tests[self._self_tests % len(tests)]

    def probe(self, plan: Plan) -> None:
        """Check the known image once, as planned for other images. Raises WrongAnswer.

        After a pause the processor's caches are cold, so the time is a measurement only if it is less than was
        expected. Then it replaces that: after a slow while, too high an expectation would refuse every image.
        """
        start = time.perf_counter()
        outputs = (plan.stream_engine or self.engine).run(plan.graph, *self.known.inputs(plan.images))
        self.known.check(plan.graph, outputs, provider=self.engine.provider)
        if not plan.stream_engine:
            self._latency[plan.graph].lower(plan.images, time.perf_counter() - start)

    def best_batch(self, graph: Graph) -> int:
        """Most images worth running at once."""
        return self.streams.count if self.streams.count > 1 else self._latency[graph].best

    def allows(self, plan: Plan) -> bool:
        """Whether this is still to be run as planned: memory may have been too short for it since."""
        return plan.stream_engine is not None or plan.images <= self.sizes(plan.graph)[-1]

    def expected(self, plan: Plan) -> float:
        """Seconds that a run will take, with runs on all streams beside one on a stream. As far as is known: 0 where
        nothing is.
        """
        return self._latency[plan.graph].expected(self._at_once(plan))

    def forbid(self, graph: Graph, images: int) -> int:
        """Make no batch of this size or larger any more. The largest that is left, 1 at least."""
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

    def _alone(self, graph: Graph, waiting: int) -> Plan:
        """A run on all cores."""
        latency = self._latency[graph]
        images = 1 if self.streams.count > 1 else min(waiting, latency.best)
        return Plan(
            graph, images if self.engine.pads_batches else max(size for size in latency.sizes if size <= images)
        )

    def _at_once(self, plan: Plan) -> int:
        """Images in all runs that share the cores."""
        return plan.images * (self.streams.count if plan.stream_engine else 1)

    @contextmanager
    def _timed(self, plan: Plan) -> Iterator[None]:
        """Measure a run. A run that raises counts for nothing."""
        start = time.perf_counter()
        yield
        self._latency[plan.graph].add(self._at_once(plan), time.perf_counter() - start)

    def _measure(self, graph: Graph, size: int, *, runs: int) -> None:
        before = resident_memory()
        for _ in range(runs):
            self.check(graph, size)
        self._memory.add(graph, size, resident_memory() - before)

    def _choose_streams(self) -> None:
        """Have streams, or batches on all cores, not both: beside a run on a stream nothing runs on all cores."""
        if self.streams.count == 1:
            return
        if self._on_a_stream() < FIRST_RUN_RATIO * STREAMS_PAY_S:
            self._measure("classify", 1, runs=1)
        if self._on_a_stream() < STREAMS_PAY_S:
            self.streams.close()
            return
        for latency in self._latency.values():
            latency.forbid(self.streams.count + 1)

    def _do_without_streams(self) -> None:
        """Run one image after another, which is what the engine is for."""
        self.streams.close()
        for latency in self._latency.values():
            latency.forbid(2)

    def _on_a_stream(self) -> float:
        """Seconds that an image takes on one stream, which has its share of the cores."""
        return self.streams.count * min(self.expected(Plan(graph, 1)) for graph in GRAPHS)

    def _fit(self) -> None:
        """Forbid batches, and streams, that do not fit into the memory. A single image is always allowed."""
        if self.streams.count > 1 and not self.streams.has_room(memory=self._memory):
            self._do_without_streams()
        if too_large := [size for size in self.sizes("explain")[1:] if not self._memory.fits(size)]:
            for graph in GRAPHS:
                self.forbid(graph, too_large[0])
