"""How long runs of one graph take, by the number of images that are run at once."""

import threading

NEWEST_WEIGHT = 0.1  # of the newest run in the running mean
MOST_RATIO = 2.0  # of the newest run to the mean: if the machine was paused meanwhile, it seems to have taken hours
THROUGHPUT_RATIO = 0.95  # to the best throughput, at which a larger batch would only make its images wait longer


class Latency:
    """A running mean for each number of images. Any thread can add and read."""

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
