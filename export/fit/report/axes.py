"""The axes of a chart: numbers to places on a canvas."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.drawing.canvas import FAINT, INK, Canvas, Color, text_width

TICK, NAME, LEGEND = 14, 16, 15  # sizes of text


@dataclass(frozen=True, kw_only=True)
class Axes:
    """Both go from 0 to their last tick. Edges are pixels of the canvas."""

    left: float
    top: float
    right: float
    bottom: float
    across: Sequence[float]  # ticks
    down: Sequence[float]

    def x(self, value: float) -> float:
        return self.left + value / self.across[-1] * (self.right - self.left)

    def y(self, value: float) -> float:
        return self.bottom - value / self.down[-1] * (self.bottom - self.top)

    def draw(self, canvas: Canvas, *, across: str, down: str) -> None:
        """The grid, the ticks' numbers, and the names of the axes."""
        for value in self.down:
            canvas.line(self.left, self.y(value), self.right, self.y(value), color=FAINT if value else INK)
            canvas.text(self.left - 10, self.y(value), f"{value:g}", size=TICK, anchor="rm")
        for value in self.across:
            canvas.line(self.x(value), self.bottom, self.x(value), self.bottom + 5)
            canvas.text(self.x(value), self.bottom + 10, f"{value:g}", size=TICK, anchor="ma")
        canvas.line(self.left, self.top, self.left, self.bottom)
        canvas.text((self.left + self.right) / 2, self.bottom + 32, across, size=NAME, anchor="ma")
        canvas.upward_text(self.left - 58, (self.top + self.bottom) / 2, down, size=NAME)


def legend(canvas: Canvas, x: float, y: float, entries: Sequence[tuple[str, Color]]) -> None:
    """Names of series with their colours, from left to right."""
    for name, color in entries:
        canvas.path([(x, y), (x + 22, y)], color=color, width=3)
        canvas.text(x + 28, y, name, size=LEGEND, anchor="lm")
        x += 28 + text_width(name, size=LEGEND) + 24
