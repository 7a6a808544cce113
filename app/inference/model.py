"""The model that is served: an engine, how its runs share the device, and whether it still computes right numbers."""

import time
from collections.abc import Sequence

from pydantic import BaseModel

from app.inference.engine import GRAPHS, Classes, Engine, Graph, Images, Outputs, Plan
from app.inference.known_answer import KnownImage
from app.inference.latency import Latency


class BatchLatency(BaseModel):
    """Running mean over the runs of so many images at once, from warm-up on."""

    graph: Graph
    batch: int
    milliseconds: float


class Model:
    """An engine that has given the known answer in every way in which it runs images, before it answers others.

    A CPU runs a single image on all cores, and several that wait for labels side by side, each on its share of the
    cores. A GPU runs batches, at most as large as raises throughput: that is measured once, in the warm-up.
    """

    def __init__(self, *, engine: Engine, known: KnownImage) -> None:
        self.engine = engine
        self.known = known
        self._latency = {graph: Latency() for graph in GRAPHS}
        self._largest: dict[Graph, int] = dict.fromkeys(GRAPHS, 1)  # batch, until the warm-up
        self._self_tests = 0

    def warm_up(self) -> None:
        """Check the known image in each of the engine's ways to run. Raises WrongAnswer, and what the engine raises."""
        self.engine.warm_up(self.check)
        if self.engine.side_by_side == 1:
            self._largest = {graph: latency.best() for graph, latency in self._latency.items()}

    def plan(self, graph: Graph, waiting: int, *, running: Sequence[Plan] = ()) -> Plan | None:
        """The next run, when at least one image waits for this graph. None while it has to wait for a run under way: on
        all cores a run is alone.
        """
        if not all(run.beside for run in running):
            return None
        several = waiting + len(running) > 1  # there is something to share the cores with
        if several and graph == "classify" and self.engine.side_by_side > 1:
            return Plan(graph, 1, beside=True)
        return None if running else Plan(graph, min(waiting, self._largest[graph]))

    def run(self, plan: Plan, images: Images, classes: Classes = ()) -> Outputs:
        """Outputs for as many `images` as planned, each uint8 (height, width, 3), and the `classes` to explain. As
        many threads may call it at once as the engine has runs side by side, each with such a run.
        """
        start = time.perf_counter()
        outputs = self.engine.run(plan.graph, images, classes, beside=plan.beside)  # what raises counts for nothing
        self._latency[plan.graph].add(self._at_once(plan), time.perf_counter() - start)
        return outputs

    def check(self, plan: Plan) -> None:
        """A run that consists of the known image, and is measured as others are. Raises WrongAnswer."""
        outputs = self.run(plan, *self.known.inputs(plan.images))
        self.known.check(plan.graph, outputs, provider=self.engine.provider)

    def next_self_test(self, *, running: Sequence[Plan] = ()) -> Plan | None:
        """A run of the known image: each graph in each way in which images are run, in turn. None while it has to wait
        for a run under way, as in `plan`. Belongs to one thread at a time.
        """
        tests = [Plan("classify", 1, beside=True)] if self.engine.side_by_side > 1 else []
        if not running:
            tests += [Plan(graph, 1) for graph in GRAPHS]
        if not tests or not all(run.beside for run in running):
            return None
        self._self_tests += 1
        return tests[self._self_tests % len(tests)]

    def probe(self, plan: Plan) -> None:
        """Check the known image once, as planned for other images. Raises WrongAnswer.

        After a pause the processor's caches are cold, so the time is a measurement only if it is less than was
        expected. Then it replaces that: after a slow while, too high an expectation would refuse every image.
        """
        start = time.perf_counter()
        images, classes = self.known.inputs(plan.images)
        outputs = self.engine.run(plan.graph, images, classes, beside=plan.beside)
        self.known.check(plan.graph, outputs, provider=self.engine.provider)
        if not plan.beside:
            self._latency[plan.graph].lower(plan.images, time.perf_counter() - start)

    def best_batch(self, graph: Graph) -> int:
        """Most images worth running at once."""
        return max(self.engine.side_by_side, self._largest[graph])

    def expected(self, plan: Plan) -> float:
        """Seconds that a run will take, where all that can run beside it do. As far as is known: 0 where nothing is."""
        return self._latency[plan.graph].expected(self._at_once(plan))

    def latency(self) -> list[BatchLatency]:
        """What has been measured so far, in the warm-up and while serving."""
        return [
            BatchLatency(graph=graph, batch=size, milliseconds=round(1000 * seconds, 3))
            for graph, latency in self._latency.items()
            for size, seconds in latency.seconds.items()
        ]

    def _at_once(self, plan: Plan) -> int:
        """Images in all runs that share the device."""
        return self.engine.side_by_side if plan.beside else plan.images
