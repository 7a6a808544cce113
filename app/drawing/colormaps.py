"""Numbers to colours, by matplotlib's tables."""

from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from PIL import Image

Colormap = Literal["viridis", "inferno", "magma", "cividis", "turbo", "gray", "rdbu"]

# One row of 256 RGB colours each, in the order of Colormap; lab/golden/make_colormaps.py writes it from matplotlib.
COLORMAPS = Path(__file__).parent / "colormaps.png"


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
