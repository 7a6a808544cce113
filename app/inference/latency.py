"""How long a batch of each size takes, and from that the largest batch that pays."""

import threading

THROUGHPUT_RATIO = 0.95  # to the best throughput, at which a larger batch would only make its images wait longer
NEWEST_WEIGHT = 0.1  # of the newest run in the running mean
MOST_RATIO = 2.0  # of the newest run to the mean: if the machine was paused meanwhile, it seems to have taken hours


class LatencyModel:
    """Latency of one graph at powers of two and at `max_batch`. Any thread can add and read."""

    def __init__(self, *, max_batch: int) -> None:
        self.sizes: list[int] = sorted({min(2**power, max_batch) for power in range(max_batch.bit_length() + 1)})
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

    def size(self, batch: int) -> int:
        """The smallest size that holds `batch` images."""
        return next((size for size in self.sizes if size >= batch), batch)

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

    @property
    def settled(self) -> bool:
        """Whether the best size has been measured, by more than its first run."""
        return self.best in self._run_twice
