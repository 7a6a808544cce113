"""When the requests of an open loop are due."""

import random
from collections.abc import Iterator


def arrivals(seconds: float, rate: float, seed: int = 0) -> Iterator[float]:
    """When requests are due, in seconds from the start: with one seed always the same times, scaled by the rate."""
    generator = random.Random(seed)
    due = generator.expovariate(rate)
    while due < seconds:
        yield due
        due += generator.expovariate(rate)
