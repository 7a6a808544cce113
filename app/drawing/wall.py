"""Every head of every layer on one sheet and one scale: layers down, heads across."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from app.drawing.colorbar import INK, PAPER, with_colorbar
from app.drawing.heatmap import Style, colorize, colormap
from app.drawing.png import encode
from app.drawing.scale import Limits
from app.maps.record import Record

WIDTH = 1200  # pixels of a sheet, wider only where cells would be less than SMALLEST_CELL
SMALLEST_CELL, LARGEST_CELL = 24, 160
GAP = 4
FONT = 12
MARGIN = 3 * FONT  # left of the cells and above them, for the numbers


class Sheet(NamedTuple):
    """Where the cells lie, in pixels. That of layer l and head h starts at origin + (h, l) * (cell + gap)."""

    origin: tuple[int, int]  # left, top
    cell: tuple[int, int]  # width, height
    gap: int
    size: tuple[int, int]  # width, height of all, without a colour bar


def lay_out(layers: int, heads: int, grid: tuple[int, int]) -> Sheet:
    """A sheet for maps of `grid` (rows, columns), every patch the same whole number of pixels wide where that fits."""
    rows, columns = grid
    room = min((WIDTH - MARGIN - GAP * heads) // heads, LARGEST_CELL)
    if columns <= room:
        width = max(room // columns, -(-SMALLEST_CELL // columns)) * columns
    else:
        width = max(room, SMALLEST_CELL)
    cell = width, max(round(width * rows / columns), 1)
    size = MARGIN + heads * (cell[0] + GAP), MARGIN + layers * (cell[1] + GAP)
    return Sheet((MARGIN, MARGIN), cell, GAP, size)


def draw_wall(maps: npt.NDArray[np.float32], record: Record, style: Style, limits: Limits) -> bytes:
    """PNG of maps (layers, heads, rows, columns), laid out by `lay_out`.

    With overlay each lies on the pixels that the network saw.
    """
    layers, heads, *grid = maps.shape
    sheet = lay_out(layers, heads, (grid[0], grid[1]))
    canvas = Image.new("RGB", sheet.size, PAPER)
    seen = Image.fromarray(record.pixels).resize(sheet.cell, reducing_gap=2.0) if style.overlay else None
    for layer, head in np.ndindex(layers, heads):
        cell = colorize(maps[layer, head], sheet.cell, style, limits)
        canvas.paste(cell if seen is None else Image.blend(seen, cell, style.alpha), corner(sheet, layer, head))
    _number(canvas, sheet, layers, heads)
    if style.colorbar:
        canvas = with_colorbar(canvas, limits, colormap(style, limits), maps, size=FONT)
    return encode(canvas)


def corner(sheet: Sheet, layer: int, head: int) -> tuple[int, int]:
    """Left and top of a cell."""
    (left, top), (width, height) = sheet.origin, sheet.cell
    return left + head * (width + sheet.gap), top + layer * (height + sheet.gap)


def _number(canvas: Image.Image, sheet: Sheet, layers: int, heads: int) -> None:
    """Heads above the columns, layers left of the rows."""
    font = ImageFont.load_default(size=FONT)
    draw = ImageDraw.Draw(canvas)
    width, height = sheet.cell
    for head in range(heads):
        left, top = corner(sheet, 0, head)
        draw.text((left + width // 2, top - GAP), str(head), INK, font, anchor="mb")
    for layer in range(layers):
        left, top = corner(sheet, layer, 0)
        draw.text((left - GAP, top + height // 2), str(layer), INK, font, anchor="rm")
    draw.text(((MARGIN + canvas.width) // 2, GAP // 2), "head", INK, font, anchor="ma")
    upright = Image.new("RGB", (MARGIN, FONT + GAP), PAPER)
    ImageDraw.Draw(upright).text((MARGIN // 2, GAP // 2), "layer", INK, font, anchor="ma")
    canvas.paste(upright.rotate(90, expand=True), (0, (MARGIN + canvas.height) // 2 - MARGIN // 2))
