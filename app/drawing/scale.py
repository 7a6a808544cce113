"""Which number is at the first colour and which at the last."""

from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

Scale = Literal["min-max", "percentile", "shared", "absolute"]

PERCENTILES = (1, 99)


class Limits(NamedTuple):
    """The numbers at the two ends of the colours. Below zero only for signed maps, and then symmetric around it."""

    low: float
    high: float

    def unit(self, values: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.float32]:
        """`values` from 0 (low and less) to 1 (high and more); a map without a range is 0."""
        if self.low == self.high:
            return np.zeros(values.shape, np.float32)
        unit = (values.astype(np.float64) - self.low) / (self.high - self.low)
        return np.clip(unit, 0, 1).astype(np.float32)


def limits(
    values: npt.NDArray[np.floating[Any]], siblings: npt.NDArray[np.floating[Any]], scale: Scale, *, signed: bool
) -> Limits:
    """Limits of one map for drawing it.

    min-max takes the map's own smallest and largest number; percentile its 1st and 99th percentile, so that one
    outlier does not darken the rest; shared the smallest and largest number of all `siblings`, so that layers and
    heads can be compared; absolute 0 to 1, of a signed map -1 to 1, so that pictures can be compared.
    """
    match scale:
        case "absolute":
            return Limits(-1.0, 1.0) if signed else Limits(0.0, 1.0)
        case "shared":
            low, high = _range(siblings)
        case "min-max":
            low, high = _range(values)
        case "percentile":
            low, high = (float(number) for number in np.percentile(values, PERCENTILES))
            if low == high:  # a few patches hold everything, and the cut would leave none of them
                low, high = _range(values)
    if not signed:
        return Limits(low, high)
    bound = max(abs(low), abs(high)) or 1.0  # a map of zeros needs a range in which zero is the middle
    return Limits(-bound, bound)


def _range(numbers: npt.NDArray[np.floating[Any]]) -> tuple[float, float]:
    return float(numbers.min()), float(numbers.max())
