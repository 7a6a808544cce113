"""A sheet of small pictures of one size under a title, with captions, axes or a colour bar."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image

from app.drawing.canvas import Canvas, text_width
from app.drawing.colormaps import paint

MARGIN, GAP = 28, 6
TITLE, NOTE, LABEL, CAPTION = 22, 15, 16, 13  # sizes of text
TILES_TOP = 92
AXIS_WIDTH, AXIS_HEIGHT, CAPTION_HEIGHT = 62, 44, 20
BAR_WIDTH, BAR_HEIGHT, BAR_SPACE = 16, 150, 112  # the smallest height
BAR_TICKS = 5


@dataclass(frozen=True, kw_only=True)
class Bar:
    """The numbers that the colours stand for."""

    low: float
    high: float
    label: str

    def colors(self, values: npt.NDArray[np.floating]) -> Image.Image:
        """Numbers (height, width) in viridis."""
        return paint((values - self.low) / ((self.high - self.low) or 1.0), "viridis")


@dataclass(frozen=True, kw_only=True)
class Sheet:
    title: str
    note: str
    tiles: Sequence[Image.Image]  # row by row
    columns: int
    zoom: int  # width of a pixel of a tile, in pixels of the sheet
    captions: Sequence[str] = ()  # one per tile, below it
    axes: tuple[Sequence[int], Sequence[int]] | None = None  # numbers of the patch rows and columns
    bar: Bar | None = None

    def png(self) -> bytes:
        canvas = Canvas(*self._size())
        canvas.text(MARGIN, 22, self.title, size=TITLE)
        canvas.text(MARGIN, 56, self.note, size=NOTE)
        for index, tile in enumerate(self.tiles):
            x, y = self._place(index % self.columns, index // self.columns)
            canvas.picture(x, y, tile, zoom=self.zoom)
            if self.captions:
                canvas.text(x + self._width / 2, y + self._height + 4, self.captions[index], size=CAPTION, anchor="ma")
        if self.axes:
            self._draw_axes(canvas, *self.axes)
        if self.bar:
            self._draw_bar(canvas, self.bar)
        return canvas.png()

    @property
    def _width(self) -> int:
        """Of a tile on the sheet."""
        return self.tiles[0].width * self.zoom

    @property
    def _height(self) -> int:
        return self.tiles[0].height * self.zoom

    @property
    def _rows(self) -> int:
        return -(-len(self.tiles) // self.columns)

    def _place(self, column: int, row: int) -> tuple[int, int]:
        """Left and top of a tile."""
        left = MARGIN + (AXIS_WIDTH if self.axes else 0)
        down = self._height + GAP + (CAPTION_HEIGHT if self.captions else 0)
        return left + column * (self._width + GAP), TILES_TOP + row * down

    def _size(self) -> tuple[int, int]:
        right, bottom = self._place(self.columns, self._rows)
        bottom += AXIS_HEIGHT if self.axes else 0
        if self.bar:
            right, bottom = right + BAR_SPACE, max(bottom, TILES_TOP + self._bar_height + GAP)
        text = max(text_width(self.title, size=TITLE), text_width(self.note, size=NOTE))
        return max(right - GAP, MARGIN + round(text)) + MARGIN, bottom - GAP + MARGIN

    @property
    def _bar_height(self) -> int:
        bottom = self._place(0, self._rows)[1] - GAP - (CAPTION_HEIGHT if self.captions else 0)
        return max(bottom - TILES_TOP, BAR_HEIGHT)

    def _draw_axes(self, canvas: Canvas, rows: Sequence[int], columns: Sequence[int]) -> None:
        left, top = self._place(0, 0)
        right, bottom = self._place(self.columns, self._rows)
        for row, name in enumerate(rows):
            y = self._place(0, row)[1] + self._height / 2
            canvas.text(left - 8, y, str(name), size=CAPTION, anchor="rm")
        for column, name in enumerate(columns):
            x = self._place(column, 0)[0] + self._width / 2
            canvas.text(x, bottom + 2, str(name), size=CAPTION, anchor="ma")
        canvas.upward_text(MARGIN + 8, (top + bottom - GAP) / 2, "Patch row", size=LABEL)
        canvas.text((left + right - GAP) / 2, bottom + AXIS_HEIGHT - 12, "Patch column", size=LABEL, anchor="mm")

    def _draw_bar(self, canvas: Canvas, bar: Bar) -> None:
        right, _ = self._place(self.columns, 0)
        x, height = right + 14, self._bar_height
        values = np.linspace(bar.high, bar.low, height)
        canvas.picture(x, TILES_TOP, bar.colors(np.repeat(values[:, None], BAR_WIDTH, axis=1)))
        for value in np.linspace(bar.low, bar.high, BAR_TICKS):
            y = TILES_TOP + height * (bar.high - value) / ((bar.high - bar.low) or 1.0)
            canvas.line(x + BAR_WIDTH, y, x + BAR_WIDTH + 4, y)
            canvas.text(x + BAR_WIDTH + 8, y, f"{value:.2g}", size=CAPTION, anchor="lm")
        canvas.upward_text(right + BAR_SPACE - 10, TILES_TOP + height / 2, bar.label, size=LABEL)
