"""What batches cost, in time and memory, and from that the largest that pays and the largest that fits."""

import logging
import math
import threading
from dataclasses import dataclass, field

from app.inference.engine import Graph

log = logging.getLogger(__name__)

THROUGHPUT_RATIO = 0.95  # to the best throughput, at which a larger batch would only make its images wait longer
NEWEST_WEIGHT = 0.1  # of the newest run in the running mean
MOST_RATIO = 2.0  # of the newest run to the mean: if the machine was paused meanwhile, it seems to have taken hours
MIB = 2**20


class LatencyModel:
    """Latency of one graph at powers of two, `max_batch`, and one image per stream. Any thread can add and read."""

    def __init__(self, *, max_batch: int, streams: int = 1) -> None:
        powers = {min(2**power, max_batch) for power in range(max_batch.bit_length() + 1)}
        self.sizes: list[int] = sorted(powers | {streams})
        self._run_twice: set[int] = set()
        self._seconds: dict[int, float] = {}  # also of sizes that were forbidden since
        self._lock = threading.Lock()

    def add(self, batch: int, seconds: float) -> None:
        """Add one run. The first of each size counts until the second: it also allocates the memory for that size."""
        if batch not in self.sizes:
            return
        with self._lock:
            mean = self._seconds.get(batch)
            if mean is None:
                self._seconds[batch] = seconds
            elif batch in self._run_twice:
                self._seconds[batch] = mean + NEWEST_WEIGHT * (min(seconds, MOST_RATIO * mean) - mean)
            else:
                self._seconds[batch] = min(mean, seconds)
                self._run_twice.add(batch)

    def lower(self, batch: int, seconds: float) -> None:
        """Replace the mean of this size where it is larger."""
        with self._lock:
            if batch in self._seconds:
                self._seconds[batch] = min(self._seconds[batch], seconds)

    def forbid(self, batch: int) -> int:
        """Never use this batch size or a larger one again. Returns the largest that is left, at least 1."""
        with self._lock:
            self.sizes = [size for size in self.sizes if size < batch] or [1]
            return self.sizes[-1]

    def expected(self, batch: int) -> float:
        """Seconds of a run, from the smallest measured size that holds it, else from the largest; 0 before any."""
        seconds = self.seconds
        size = next((size for size in seconds if size >= batch), max(seconds, default=0))
        return seconds[size] * max(1.0, batch / size) if size else 0.0

    @property
    def seconds(self) -> dict[int, float]:
        """Running mean for each batch size that has been measured."""
        return {size: self._seconds[size] for size in self.sizes if size in self._seconds}

    @property
    def best(self) -> int:
        """The smallest size within 5 % of the best throughput.

        If that is the largest one measured, the next size is returned instead: doubling goes on as long as it pays.
        """
        seconds = self.seconds
        rates = {size: size / seconds[size] for size in seconds}
        enough = THROUGHPUT_RATIO * max(rates.values(), default=0.0)
        best = next((size for size in rates if rates[size] >= enough), 0)
        if best == max(seconds, default=0):
            return next((size for size in self.sizes if size > best), best)
        return best

    def settled(self, batch: int) -> bool:
        """Whether this size has been measured, by more than its first run."""
        return batch in self._run_twice


@dataclass(kw_only=True)
class MemoryModel:
    """Resident memory that runs add, in bytes, learned from the first runs of each size.

    It takes memory for a run to grow with its images, and both graphs to keep theirs: ONNX Runtime's arena gives
    nothing back. Where memory is short the kernel ends the process without an error that a smaller batch could follow,
    so what does not fit must never run.
    """

    allowed: float  # for all of this process
    before: int  # what it has before its first run
    _image: dict[Graph, float] = field(default_factory=dict, init=False)

    def add(self, graph: Graph, images: int, grown: int) -> None:
        """The first run of this many images made the resident memory grow by so much."""
        self._image[graph] = max(self._image.get(graph, 0.0), grown / images)

    def needed(self, images: int) -> float:
        """Bytes for batches of up to this many images."""
        return self.before + images * sum(self._image.values())

    def fits(self, images: int) -> bool:
        return self.needed(images) <= self.allowed

    def holds_streams(self, images: int, *, now: int, weights: int) -> bool:
        """Whether streams fit beside `now` bytes: they take the weights, and memory for the images on all of them."""
        return now + weights + images * sum(self._image.values()) <= self.allowed

    def report(self, *, largest: int, wanted: int) -> None:
        """Log what was decided: batches of `largest` images, where `wanted` are allowed by the settings."""
        if math.isinf(self.allowed):
            return
        left = f"and {self.allowed // MIB:.0f} MiB are left for it"
        needed = {size: f"{self.needed(size) // MIB:.0f} MiB" for size in (1, largest, wanted)}
        if not self.fits(1):
            log.warning(
                f"memory: the model needs about {needed[1]} for single images, {left}. The kernel may end this "
                "process. Raise the memory limit or lower VIT_STORE_MAX_BYTES."
            )
        elif largest < wanted:
            because = f"because the model would need about {needed[wanted]} for {wanted}, {left}"
            log.warning(f"memory: batches have at most {largest} images, {because}")
        else:
            log.info(f"memory: the model needs about {needed[largest]} for batches of {largest}, {left}")


def warn_of_weights(needed: int, allowed: float) -> None:
    """Before the engine is opened: while it is, the kernel may end this process without a word."""
    if needed > allowed:
        log.warning(
            f"memory: the weights alone take {needed // MIB} MiB, and {allowed // MIB:.0f} MiB are left for the model. "
            "The kernel may end this process. Raise the memory limit, export the model in int8, or lower "
            "VIT_STORE_MAX_BYTES."
        )
