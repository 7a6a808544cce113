"""The model that is served: an engine, whether it still computes right numbers, and how long its runs take."""

import threading
import time
from collections.abc import Sequence

from pydantic import BaseModel

from app.bundle import GRAPHS, Graph
from app.inference.engine import Asked, Engine, Images, Outputs
from app.inference.known_answer import KnownImage

NEWEST_WEIGHT = 0.1  # of the newest run in the running mean
MOST_RATIO = 2.0  # of the newest run to the mean: if the machine was paused meanwhile, it seems to have taken hours
THROUGHPUT_RATIO = 0.95  # to the best throughput, at which a larger batch would only make its images wait longer


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
        self.largest: dict[Graph, int] = dict.fromkeys(GRAPHS, 1)  # batch that pays; 1 until the warm-up
        self._latency = {graph: Latency() for graph in GRAPHS}

    def warm_up(self) -> None:
        """Check the known image in each of the engine's ways to run. Raises WrongAnswer, and what the engine raises."""
        self.engine.warm_up(self.check)
        if self.engine.side_by_side == 1:
            self.largest |= {graph: self._latency[graph].best() for graph in self.engine.layout}

    def run(self, graph: Graph, images: Images, asked: Sequence[Asked] = (), *, beside: bool = False) -> Outputs:
        """Outputs for `images`, each uint8 (height, width, 3), and what is `asked` of each. As many threads may call it
        at once as the engine has runs side by side, each `beside` the others and with one image.
        """
        start = time.perf_counter()
        outputs = self.engine.run(graph, images, asked, beside=beside)  # what raises counts for nothing
        self._latency[graph].add(self._at_once(len(images), beside=beside), time.perf_counter() - start)
        return outputs

    def check(self, graph: Graph, images: int = 1, *, beside: bool = False) -> None:
        """A run that consists of the known image, and is measured as others are. Raises WrongAnswer."""
        outputs = self.run(graph, *self.known.inputs(images), beside=beside)
        self.known.check(graph, outputs, provider=self.engine.provider)

    def probe(self, graph: Graph, images: int = 1, *, beside: bool = False) -> None:
        """Check the known image as other images are run, while serving. Raises WrongAnswer.

        After a pause the processor's caches are cold, so the time is a measurement only if it is less than was
        expected. Then it replaces that: after a slow while, too high an expectation would refuse every image.
        """
        start = time.perf_counter()
        outputs = self.engine.run(graph, *self.known.inputs(images), beside=beside)
        self.known.check(graph, outputs, provider=self.engine.provider)
        if not beside:
            self._latency[graph].lower(images, time.perf_counter() - start)

    def best_batch(self, graph: Graph) -> int:
        """Most images worth running at once."""
        return max(self.engine.side_by_side, self.largest[graph])

    def expected(self, graph: Graph, images: int = 1, *, beside: bool = False) -> float:
        """Seconds that a run will take, where all that can run beside it do. As far as is known: 0 where nothing is."""
        return self._latency[graph].expected(self._at_once(images, beside=beside))

    def latency(self) -> list[BatchLatency]:
        """What has been measured so far, in the warm-up and while serving."""
        return [
            BatchLatency(graph=graph, batch=size, milliseconds=round(1000 * seconds, 3))
            for graph, latency in self._latency.items()
            for size, seconds in latency.seconds.items()
        ]

    def _at_once(self, images: int, *, beside: bool) -> int:
        """Images in all runs that share the device."""
        return self.engine.side_by_side if beside else images


class Latency:
    """Of one graph: a running mean in seconds for each number of images at once. Any thread can add and read."""

    def __init__(self) -> None:
        self._run_twice: set[int] = set()
        self._seconds: dict[int, float] = {}
        self._lock = threading.Lock()

    def add(self, images: int, seconds: float) -> None:
        """Add one run. The first of each size counts until the second: it also allocates the memory for that size."""
        with self._lock:
            mean = self._seconds.get(images)
            if mean is None:
                self._seconds[images] = seconds
            elif images in self._run_twice:
                self._seconds[images] = mean + NEWEST_WEIGHT * (min(seconds, MOST_RATIO * mean) - mean)
            else:
                self._seconds[images] = min(mean, seconds)
                self._run_twice.add(images)

    def lower(self, images: int, seconds: float) -> None:
        """Replace the mean of this size where it is larger."""
        with self._lock:
            if images in self._seconds:
                self._seconds[images] = min(self._seconds[images], seconds)

    def expected(self, images: int) -> float:
        """Seconds of a run, from the smallest measured size that holds it, else from the largest; 0 before any."""
        seconds = self.seconds
        size = next((size for size in seconds if size >= images), max(seconds, default=0))
        return seconds[size] * max(1.0, images / size) if size else 0.0

    @property
    def seconds(self) -> dict[int, float]:
        """The running means, the smallest size first."""
        with self._lock:
            return dict(sorted(self._seconds.items()))

    def best(self) -> int:
        """The smallest of the measured sizes that is within 5 % of the best throughput."""
        rates = {size: size / seconds for size, seconds in self.seconds.items()}
        return next(size for size, rate in rates.items() if rate >= THROUGHPUT_RATIO * max(rates.values()))
