"""Pictures of a model itself, most of them sheets of small pictures under a title, and the numbers in them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from app.drawing.colors import Limits, paint
from export.pictures.canvas import Canvas, text_width

MARGIN, GAP = 28, 6
TITLE, NOTE, LABEL, CAPTION = 22, 15, 16, 13  # sizes of text
TILES_TOP = 92
AXIS_WIDTH, AXIS_HEIGHT, CAPTION_HEIGHT = 62, 44, 20
BAR_WIDTH, BAR_HEIGHT, BAR_SPACE = 16, 150, 112  # the smallest height
BAR_TICKS = 5


@dataclass(frozen=True, kw_only=True)
class Picture:
    name: str
    title: str
    png: bytes
    numbers: Any  # JSON

    def write(self, folder: Path) -> None:
        """Write NAME.png and NAME.json into the folder."""
        (folder / f"{self.name}.png").write_bytes(self.png)
        (folder / f"{self.name}.json").write_text(json.dumps(self.numbers), encoding="utf-8")


def viridis(values: npt.NDArray[np.floating], limits: Limits) -> Image.Image:
    """Numbers (height, width) as colours."""
    return paint(limits.unit(values), "viridis")


def sheet(
    title: str,
    note: str,
    tiles: Sequence[Image.Image],
    *,
    columns: int,
    zoom: int,
    captions: Sequence[str] = (),
    axes: tuple[Sequence[int], Sequence[int]] | None = None,
    bar: tuple[str, Limits] | None = None,
) -> bytes:
    """A PNG of `tiles` of one size, row by row, each of whose pixels is `zoom` wide.

    There is a caption below each tile, or none; `axes` are the numbers of the patch rows and columns; `bar` says what
    the colours stand for.
    """
    width, height = (side * zoom for side in tiles[0].size)
    below = CAPTION_HEIGHT if captions else 0
    lefts = [MARGIN + (AXIS_WIDTH if axes else 0) + column * (width + GAP) for column in range(columns)]
    tops = [TILES_TOP + row * (height + GAP + below) for row in range(-(-len(tiles) // columns))]
    right, bottom = lefts[-1] + width, tops[-1] + height + below
    bar_height = max(bottom - below - TILES_TOP, BAR_HEIGHT)
    text = MARGIN + round(max(text_width(title, size=TITLE), text_width(note, size=NOTE)))
    canvas = Canvas(
        max(right + (BAR_SPACE if bar else 0), text) + MARGIN,
        max(bottom + (AXIS_HEIGHT if axes else 0), TILES_TOP + bar_height if bar else 0) + MARGIN,
    )
    canvas.text(MARGIN, 22, title, size=TITLE)
    canvas.text(MARGIN, 56, note, size=NOTE)
    for index, tile in enumerate(tiles):
        x, y = lefts[index % columns], tops[index // columns]
        canvas.picture(x, y, tile, zoom=zoom)
        if captions:
            canvas.text(x + width / 2, y + height + 4, captions[index], size=CAPTION, anchor="ma")
    if axes:
        for top, row in zip(tops, axes[0], strict=True):
            canvas.text(lefts[0] - 8, top + height / 2, str(row), size=CAPTION, anchor="rm")
        for left, column in zip(lefts, axes[1], strict=True):
            canvas.text(left + width / 2, bottom + GAP + 2, str(column), size=CAPTION, anchor="ma")
        canvas.upward_text(MARGIN + 8, (TILES_TOP + bottom) / 2, "Patch row", size=LABEL)
        canvas.text((lefts[0] + right) / 2, bottom + GAP + AXIS_HEIGHT - 12, "Patch column", size=LABEL, anchor="mm")
    if bar:
        label, limits = bar
        x, values = right + GAP + 14, np.linspace(limits.high, limits.low, bar_height)
        canvas.picture(x, TILES_TOP, viridis(np.repeat(values[:, None], BAR_WIDTH, axis=1), limits))
        for value in np.linspace(limits.low, limits.high, BAR_TICKS):
            y = TILES_TOP + bar_height * (limits.high - value) / ((limits.high - limits.low) or 1.0)
            canvas.line(x + BAR_WIDTH, y, x + BAR_WIDTH + 4, y)
            canvas.text(x + BAR_WIDTH + 8, y, f"{value:.2g}", size=CAPTION, anchor="lm")
        canvas.upward_text(right + GAP + BAR_SPACE - 10, TILES_TOP + bar_height / 2, label, size=LABEL)
    return canvas.png()
