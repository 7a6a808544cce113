"""How long a batch of each size takes, and from that the largest batch worth making."""

GOOD_ENOUGH = 0.95  # of the best throughput: a larger batch only makes everyone in it wait longer
WEIGHT = 0.1  # of the newest run in the running mean


class LatencyModel:
    """Of one graph, from runs of powers of two and of the largest batch allowed. Any thread may add and read."""

    def __init__(self, *, max_batch: int) -> None:
        self.sizes: list[int] = sorted({min(2**power, max_batch) for power in range(max_batch.bit_length() + 1)})
        self._first: set[int] = set()
        self._seconds: dict[int, float] = {}

    def add(self, batch: int, seconds: float) -> None:
        """Take in one run. The first of each size does not count: it also pays for the size's memory."""
        if batch not in self.sizes:
            return
        if batch not in self._first:
            self._first.add(batch)
            return
        known = self._seconds.get(batch, seconds)
        self._seconds = {**self._seconds, batch: known + WEIGHT * (seconds - known)}

    def forbid(self, batch: int) -> int:
        """Make no batch of this size or larger any more. The largest that is left, 1 at least."""
        self.sizes = [size for size in self.sizes if size < batch] or [1]
        self._seconds = {size: value for size, value in self._seconds.items() if size in self.sizes}
        return self.sizes[-1]

    def expected(self, batch: int) -> float:
        """Seconds of a run, by the smallest measured size that holds it, else the largest measured; 0 before any."""
        seconds = self.seconds
        size = next((size for size in seconds if size >= batch), max(seconds, default=0))
        return seconds[size] * max(1.0, batch / size) if size else 0.0

    @property
    def seconds(self) -> dict[int, float]:
        """Running mean by batch size, of the sizes that have been measured."""
        return dict(sorted(self._seconds.items()))

    @property
    def best(self) -> int:
        """The smallest size within 5 % of the best throughput.

        Where that is the largest one measured, it is the next one instead: doubling goes on as long as it pays.
        """
        seconds = self.seconds
        rates = {size: size / seconds[size] for size in seconds}
        enough = GOOD_ENOUGH * max(rates.values(), default=0.0)
        best = next((size for size in rates if rates[size] >= enough), 0)
        if best == max(seconds, default=0):
            return next((size for size in self.sizes if size > best), best)
        return best
