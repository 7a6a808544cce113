"""A chart as SVG, with the numbers in it. Its colours and type are those of the web page, light or dark."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any
from unicodedata import east_asian_width

from export.html import palette

SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # ticks
STYLE = """
.chart { font-size: 14px; fill: var(--ink); }
.chart .ink { color: var(--ink); }
.chart .faint { color: var(--line); }
.chart .learned { color: var(--edge); }
.chart .right { color: var(--accent); }
.chart .wrong { color: var(--wrong); }
.chart :is(rect, circle) { fill: currentColor; }
.chart path { fill: none; stroke: currentColor; stroke-width: 2; stroke-linejoin: round; }
.chart path:is(.ink, .faint) { stroke-width: 1; }
.chart text.on { fill: var(--accent-ink); }
"""


@dataclass(frozen=True, kw_only=True)
class Chart:
    name: str
    title: str
    caption: str  # how to read it
    svg: str
    numbers: Any  # JSON

    def write(self, folder: Path) -> None:
        """Write NAME.svg and NAME.json into the folder."""
        (folder / f"{self.name}.svg").write_text(self.svg, encoding="utf-8")
        (folder / f"{self.name}.json").write_text(json.dumps(self.numbers), encoding="utf-8")


class Drawing:
    """Positions and lengths are pixels, from the upper left corner; a `kind` is a class of STYLE."""

    def __init__(self, width: float, height: float) -> None:
        self._size = f"{width:g} {height:g}"
        self._open = f'<svg class="chart" xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}"'
        self._parts: list[str] = []

    def path(self, points: Sequence[tuple[float, float]], kind: str) -> None:
        """A line through (x, y) points."""
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._parts.append(f'<path class="{kind}" d="M{places}"/>')

    def line(self, x0: float, y0: float, x1: float, y1: float, kind: str = "ink") -> None:
        self.path([(x0, y0), (x1, y1)], kind)

    def box(self, x: float, y: float, width: float, height: float, kind: str, *, share: float = 1, tip: str) -> None:
        """A filled rectangle, the more opaque the larger the `share`. `tip` is shown under a pointer."""
        self._parts.append(
            f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'fill-opacity="{share:.3f}"><title>{escape(tip)}</title></rect>'
        )

    def dot(self, x: float, y: float, kind: str) -> None:
        self._parts.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>')

    def text(self, x: float, y: float, text: str, *, anchor: str = "start", up: bool = False, kind: str = "") -> None:
        """Its `anchor` (start, middle or end) is at (x, y), halfway up its letters; `up` reads from bottom to top."""
        turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if up else ""
        named = f' class="{kind}"' if kind else ""
        self._parts.append(
            f'<text{named} x="{x:.1f}" y="{y:.1f}" dy=".35em" text-anchor="{anchor}"{turn}>{escape(text)}</text>'
        )

    def svg(self) -> str:
        parts = "\n".join(self._parts)
        return f'{self._open} viewBox="0 0 {self._size}">\n<style>{palette()}{STYLE}</style>\n{parts}\n</svg>\n'


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


def text_width(text: str) -> float:
    """Pixels, about: fonts differ."""
    return sum(14.0 if east_asian_width(letter) in "WF" else 8.0 for letter in text)
