"""The numbers at the ticks of an axis."""

import math


def nice_ticks(largest: float, *, most: int = 8) -> list[float]:
    """From 0 in steps of 1, 2 or 5 times a power of ten to `largest` > 0 or just over, at most `most` steps."""
    power = 10 ** math.floor(math.log10(largest / most))
    step = next(s * power for s in (1, 2, 5, 10) if s * power * most >= largest)
    return [i * step for i in range(math.ceil(round(largest / step, 9)) + 1)]
