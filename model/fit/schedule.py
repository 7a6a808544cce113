"""The learning rate over the steps of a run, as a factor of the largest."""

import math
from collections.abc import Callable

Schedule = Callable[[int, int, int], float]  # step, from 0, and the numbers of all steps and of those that warm up


def cosine(step: int, steps: int, warm_up: int) -> float:
    """Rises linearly for `warm_up` steps, then falls to zero along a half cosine (paper, appendix B.1.1)."""
    if step < warm_up:
        return (step + 1) / warm_up
    return (1 + math.cos(math.pi * (step - warm_up) / max(1, steps - warm_up))) / 2


def linear(step: int, steps: int, warm_up: int) -> float:
    """Falls linearly to zero (paper, Table 3), and is smaller than that during the first `warm_up` steps."""
    return min(1.0, (step + 1) / max(1, warm_up)) * max(0.0, 1 - step / steps)
