"""A chart of accuracies: a dot for every run, and a line or a bar for their mean."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from app.drawing.canvas import FAINT, INK, Canvas, Color, text_width

WIDTH, HEIGHT = 900, 470
LEFT, TOP, RIGHT, BOTTOM = 90, 104, 870, 400
COLORS: tuple[Color, ...] = ((31, 119, 180), (214, 98, 40), (80, 140, 60), (128, 90, 160))
GREY: Color = (152, 160, 168)
RADIUS = 4.0

Series = Mapping[str, Sequence[Sequence[float]]]  # by name: for each place on the axis, the accuracy of each run


def chart(title: str, places: Sequence[str], series: Series, *, across: str, down: str, joined: bool) -> bytes:
    """PNG, 900 x 470. `joined` places are steps along an axis; others stand for themselves and have bars."""
    canvas = Canvas(WIDTH, HEIGHT)
    canvas.text(LEFT, 22, title, size=22)
    values = [value for runs in series.values() for accuracies in runs for value in accuracies]
    low, high = _range(values)
    colors = dict(zip(series, COLORS, strict=False))
    _legend(canvas, colors)
    _axes(canvas, places, low, high, across=across, down=down)
    slot = (RIGHT - LEFT) / len(places)
    for number, (name, runs) in enumerate(series.items()):
        aside = 0.0 if joined else (number - (len(series) - 1) / 2) * slot * 0.8 / len(series)
        xs = [LEFT + (place + 0.5) * slot + aside for place in range(len(places))]
        means = [(x, _down(fmean(accuracies), low, high)) for x, accuracies in zip(xs, runs, strict=True) if accuracies]
        if joined and len(means) > 1:
            canvas.path(means, color=colors[name], width=2)
        for x, y in [] if joined else means:
            half = slot * 0.36 / len(series)
            canvas.box(x - half, min(y, BOTTOM - 1), x + half, BOTTOM, fill=(*colors[name][:3], 90))
        for x, accuracies in zip(xs, runs, strict=True):
            for value in accuracies:
                canvas.dot(x, _down(value, low, high), radius=RADIUS, fill=colors[name], outline=colors[name])
    return canvas.png()


def _range(values: Sequence[float]) -> tuple[float, float]:
    """Tenths around the values: bars begin at zero only where that does not hide what differs."""
    low = int(min(values) * 10) / 10
    return (0.0 if low <= 0.3 else low), 1.0


def _down(value: float, low: float, high: float) -> float:
    return BOTTOM - (value - low) / (high - low) * (BOTTOM - TOP)


def _legend(canvas: Canvas, colors: Mapping[str, Color]) -> None:
    x = float(LEFT)
    for name, color in colors.items():
        canvas.dot(x + RADIUS, 72, radius=RADIUS, fill=color, outline=color)
        canvas.text(x + 16, 72, name, size=15, anchor="lm")
        x += 16 + text_width(name, size=15) + 26


def _axes(canvas: Canvas, places: Sequence[str], low: float, high: float, *, across: str, down: str) -> None:
    for tenth in range(round(low * 10), round(high * 10) + 1):
        y = _down(tenth / 10, low, high)
        canvas.line(LEFT, y, RIGHT, y, color=FAINT)
        canvas.text(LEFT - 10, y, f"{tenth * 10}%", size=14, anchor="rm")
    slot = (RIGHT - LEFT) / len(places)
    for number, place in enumerate(places):
        canvas.text(LEFT + (number + 0.5) * slot, BOTTOM + 10, place, size=14, anchor="ma")
    canvas.line(LEFT, BOTTOM, RIGHT, BOTTOM, color=INK)
    canvas.line(LEFT, TOP, LEFT, BOTTOM, color=INK)
    canvas.text((LEFT + RIGHT) / 2, BOTTOM + 36, across, size=16, anchor="ma")
    canvas.upward_text(26, (TOP + BOTTOM) / 2, down, size=16)
