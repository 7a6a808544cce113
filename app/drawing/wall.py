"""Every head of every layer on one sheet and one scale: layers down, heads across."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from app.drawing.colorbar import INK, PAPER, with_colorbar
from app.drawing.colors import Limits
from app.drawing.heatmap import Style, colorize, colormap
from app.drawing.png import encode
from app.images.preprocess import PreprocessedImage

WIDTH = 1200  # pixels of a sheet, wider only where cells would be less than SMALLEST_CELL
SMALLEST_CELL, LARGEST_CELL = 24, 160
GAP = 4
FONT = 12
MARGIN = 3 * FONT  # left of the cells and above them, for the numbers


class Layout(NamedTuple):
    """Where the cells lie, in pixels. The cell of layer l and head h starts at origin + (h, l) * (cell + gap)."""

    origin: tuple[int, int]  # left, top
    cell: tuple[int, int]  # width, height
    gap: int
    size: tuple[int, int]  # width, height of the sheet without a colour bar


def lay_out(layers: int, heads: int, grid: tuple[int, int]) -> Layout:
    """Layout for maps of `grid` (rows, columns). Each patch is the same whole number of pixels wide where that fits."""
    rows, columns = grid
    widest = min((WIDTH - MARGIN - GAP * heads) // heads, LARGEST_CELL)
    if columns <= widest:
        width = max(widest // columns, -(-SMALLEST_CELL // columns)) * columns
    else:
        width = max(widest, SMALLEST_CELL)
    cell = width, max(round(width * rows / columns), 1)
    size = MARGIN + heads * (cell[0] + GAP), MARGIN + layers * (cell[1] + GAP)
    return Layout((MARGIN, MARGIN), cell, GAP, size)


def draw_wall(maps: npt.NDArray[np.float32], image: PreprocessedImage, style: Style, limits: Limits) -> bytes:
    """PNG of maps (layers, heads, rows, columns), laid out by `lay_out`.

    With overlay each map lies on the pixels that the network saw.
    """
    layers, heads, *grid = maps.shape
    layout = lay_out(layers, heads, (grid[0], grid[1]))
    canvas = Image.new("RGB", layout.size, PAPER)
    seen = Image.fromarray(image.pixels).resize(layout.cell, reducing_gap=2.0) if style.overlay else None
    for layer, head in np.ndindex(layers, heads):
        cell = colorize(maps[layer, head], layout.cell, style, limits)
        canvas.paste(cell if seen is None else Image.blend(seen, cell, style.alpha), corner(layout, layer, head))
    _number(canvas, layout, layers, heads)
    if style.colorbar:
        canvas = with_colorbar(canvas, limits, colormap(style, limits), maps, size=FONT)
    return encode(canvas)


def corner(layout: Layout, layer: int, head: int) -> tuple[int, int]:
    """Left and top of a cell."""
    (left, top), (width, height) = layout.origin, layout.cell
    return left + head * (width + layout.gap), top + layer * (height + layout.gap)


def _number(canvas: Image.Image, layout: Layout, layers: int, heads: int) -> None:
    """Heads above the columns, layers left of the rows."""
    font = ImageFont.load_default(size=FONT)
    draw = ImageDraw.Draw(canvas)
    width, height = layout.cell
    for head in range(heads):
        left, top = corner(layout, 0, head)
        draw.text((left + width // 2, top - GAP), str(head), INK, font, anchor="mb")
    for layer in range(layers):
        left, top = corner(layout, layer, 0)
        draw.text((left - GAP, top + height // 2), str(layer), INK, font, anchor="rm")
    draw.text(((MARGIN + canvas.width) // 2, GAP // 2), "head", INK, font, anchor="ma")
    upward = ImageFont.TransposedFont(font, Image.Transpose.ROTATE_90)
    _, _, _, length = upward.getbbox("layer")
    draw.text((GAP // 2, (MARGIN + canvas.height - length) // 2), "layer", INK, upward)
