"""Draws a map where it belongs: on the part of the upright picture that the network saw."""

from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from PIL import Image

from app.preprocess import RESAMPLING
from app.store import Record

Colormap = Literal["viridis", "inferno", "magma", "cividis", "turbo", "gray"]
Interpolation = Literal["nearest", "bilinear", "bicubic"]

# One row of 256 RGB colours each, in the order of Colormap; tests/golden/make_colormaps.py writes it from matplotlib.
COLORMAPS = Path(__file__).parent / "colormaps.png"
OUTSIDE_BRIGHTNESS = 0.45  # of the picture around the crop: the network did not see it
PNG_COMPRESSION = 1  # zlib level: three times faster than the default for a tenth more bytes


@dataclass(frozen=True, kw_only=True)
class Style:
    """How a map looks; changes no number."""

    overlay: bool
    alpha: float
    colormap: Colormap
    interpolation: Interpolation


def draw(values: npt.NDArray[np.float32], record: Record, style: Style) -> bytes:
    """PNG of the map (rows, columns), its smallest value at the start of the colormap and its largest at the end.

    With overlay, blended over the picture; without, the colours alone, transparent where the network saw nothing.
    """
    picture = Image.open(BytesIO(record.thumbnail)).convert("RGB")
    left, top, right, bottom = _place(record, picture.size)
    colors = _colorize(values, (right - left, bottom - top), style)
    if style.overlay:
        canvas = picture.point(lambda value: value * OUTSIDE_BRIGHTNESS)
        canvas.paste(Image.blend(picture.crop((left, top, right, bottom)), colors, style.alpha), (left, top))
    else:
        canvas = Image.new("RGBA", picture.size)
        canvas.paste(colors, (left, top))
    out = BytesIO()
    canvas.save(out, "PNG", compress_level=PNG_COMPRESSION)
    return out.getvalue()


def _place(record: Record, size: tuple[int, int]) -> tuple[int, int, int, int]:
    """The crop box in pixels of a canvas of `size`, at least one pixel wide and high."""
    x, y = size[0] / record.image_size[0], size[1] / record.image_size[1]
    left, top = min(round(record.box.left * x), size[0] - 1), min(round(record.box.top * y), size[1] - 1)
    return left, top, max(round(record.box.right * x), left + 1), max(round(record.box.bottom * y), top + 1)


def _colorize(values: npt.NDArray[np.float32], size: tuple[int, int], style: Style) -> Image.Image:
    low, high = float(values.min()), float(values.max())
    unit = (values - low) / (high - low) if high > low else np.zeros_like(values)
    smooth = Image.fromarray(unit.astype(np.float32)).resize(size, RESAMPLING[style.interpolation])
    shades = np.clip(np.rint(np.asarray(smooth) * 255), 0, 255).astype(np.uint8)
    return Image.fromarray(color_table(style.colormap)[shades])


@cache
def color_table(colormap: Colormap) -> npt.NDArray[np.uint8]:
    """(256, 3) RGB."""
    with Image.open(COLORMAPS) as image:
        colors = np.array(image.convert("RGB"), dtype=np.uint8)
    row: npt.NDArray[np.uint8] = colors[get_args(Colormap).index(colormap)]
    return row
