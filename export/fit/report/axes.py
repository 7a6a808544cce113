"""The axes of a chart: numbers to places in a drawing."""

from collections.abc import Sequence
from dataclasses import dataclass

from export.fit.report.chart import Drawing


@dataclass(frozen=True, kw_only=True)
class Axes:
    """Both go from 0 to their last tick. Edges are pixels of the drawing."""

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

    def draw(self, drawing: Drawing, *, across: str, down: str) -> None:
        """The grid, the ticks' numbers, and the names of the axes."""
        for value in self.down:
            drawing.line(self.left, self.y(value), self.right, self.y(value), "faint" if value else "ink")
            drawing.text(self.left - 8, self.y(value), f"{value:g}", anchor="end")
        for value in self.across:
            drawing.line(self.x(value), self.bottom, self.x(value), self.bottom + 5)
            drawing.text(self.x(value), self.bottom + 16, f"{value:g}", anchor="middle")
        drawing.line(self.left, self.top, self.left, self.bottom)
        drawing.text((self.left + self.right) / 2, self.bottom + 38, across, anchor="middle")
        drawing.text(self.left - 46, (self.top + self.bottom) / 2, down, anchor="middle", up=True)
