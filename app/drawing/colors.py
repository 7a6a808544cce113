"""From numbers to colours: which number gets the first colour and which the last, and matplotlib's tables."""

from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
from PIL import Image

Colormap = Literal["viridis", "inferno", "magma", "cividis", "turbo", "gray", "rdbu"]

# One row of 256 RGB colours each, in the order of Colormap; lab/golden/make_colormaps.py writes it from matplotlib.
COLORMAPS = Path(__file__).parent / "colormaps.png"

Scale = Literal["robust", "robust-shared", "min-max", "percentile", "shared", "absolute"]

PERCENTILES = (1, 99)
UPPER, REACH = 98, 4 / 3  # robust colours reach this much further than this percentile: see docs/explanations.md


class Limits(NamedTuple):
    """The numbers at the two ends of the colours. Those of a signed map are symmetric around zero."""

    low: float
    high: float

    @property
    def signed(self) -> bool:
        """Whether zero is the middle: limits of unsigned maps are never below zero."""
        return self.low < 0

    def unit(self, values: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.float32]:
        """`values` from 0 (low and less) to 1 (high and more); 0 where the map has no range."""
        if self.low == self.high:
            return np.zeros(values.shape, np.float32)
        unit = (values.astype(np.float64) - self.low) / (self.high - self.low)
        return np.clip(unit, 0, 1).astype(np.float32)

    def beyond(self, values: npt.NDArray[np.floating[Any]]) -> int:
        """How many of `values` lie beyond the ends, where they have the colour of the end."""
        return int(np.count_nonzero((values < self.low) | (values > self.high)))


def limits(
    values: npt.NDArray[np.floating[Any]], siblings: npt.NDArray[np.floating[Any]], scale: Scale, *, signed: bool
) -> Limits:
    """Limits of one map for drawing it.

    robust: from the smallest number of the map to its largest, but at most REACH times as far as the UPPER percentile:
    a few hot patches never own more than a quarter of the colours, and a map without them has the ends of min-max.
    robust-shared: the same of all `siblings`, so that a head has the colours that it has among the others.
    min-max: the smallest and largest number of the map.
    percentile: its 1st and 99th percentile.
    shared: the smallest and largest number of all `siblings`, so that layers and heads can be compared.
    absolute: 0 to 1, for a signed map -1 to 1, so that images can be compared.
    """
    match scale:
        case "absolute":
            return Limits(-1.0, 1.0) if signed else Limits(0.0, 1.0)
        case "robust":
            low, high = _robust(values, signed=signed)
        case "robust-shared":
            low, high = _robust(siblings, signed=signed)
        case "shared":
            low, high = _range(siblings)
        case "min-max":
            low, high = _range(values)
        case "percentile":
            low, high = (float(number) for number in np.percentile(values, PERCENTILES))
            if low == high:  # a few patches hold everything, and the percentiles would cut them off
                low, high = _range(values)
    if not signed:
        return Limits(low, high)
    bound = max(abs(low), abs(high)) or 1.0  # a map of zeros still needs a range with zero in the middle
    return Limits(-bound, bound)


def _robust(numbers: npt.NDArray[np.floating[Any]], *, signed: bool) -> tuple[float, float]:
    """The ends of a signed map are as far from zero as its sizes say."""
    of = np.abs(numbers.astype(np.float64)) if signed else numbers.astype(np.float64)
    low, high = (0.0, float(of.max())) if signed else _range(of)
    reach = REACH * (float(np.percentile(of, UPPER)) - low)
    return low, min(high, low + reach) if reach else high  # without reach a few patches hold everything


def _range(numbers: npt.NDArray[np.floating[Any]]) -> tuple[float, float]:
    return float(numbers.min()), float(numbers.max())


def paint(unit: npt.NDArray[np.floating[Any]], colormap: Colormap) -> Image.Image:
    """Numbers (height, width) as RGB: 0 and below get the first colour, 1 and above the last."""
    shades = np.clip(np.rint(np.asarray(unit) * 255), 0, 255).astype(np.uint8)
    image = Image.fromarray(shades)
    image.putpalette(_table(colormap))  # five times faster than indexing an array of colours
    return image.convert("RGB")


@cache
def _table(colormap: Colormap) -> bytes:
    """256 times RGB."""
    with Image.open(COLORMAPS) as image:
        colors = np.array(image.convert("RGB"), dtype=np.uint8)
    row: npt.NDArray[np.uint8] = colors[get_args(Colormap).index(colormap)]
    return row.tobytes()
