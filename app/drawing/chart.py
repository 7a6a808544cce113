"""Draws mean attention distance over depth, one dot for each head (paper, Fig. 7 right)."""

import math

from app.drawing.canvas import FAINT, INK, Canvas, Color, text_width
from app.maps.distance import AttentionDistance, MeanDistance

WIDTH, HEIGHT = 960, 600
LEFT, TOP, RIGHT, BOTTOM = 90, 96, 870, 520  # of the plot
RADIUS = 5.5
SERVED, REFERENCE = (31, 119, 180), (110, 118, 126)
SERVED_FILL = (*SERVED, 150)  # translucent, so that dots behind others are visible
APART = 0.14  # layers that each kind of dots is moved to its side
MAX_LAYER_NAMES = 24

Series = list[tuple[MeanDistance, Color | None, Color, float]]  # numbers, fill, outline, layers to the right


def draw_distance(title: str, distance: AttentionDistance) -> bytes:
    """PNG, 960 x 600. Hollow dots are the images of the export, filled dots the images served since the start."""
    canvas = Canvas(WIDTH, HEIGHT)
    canvas.text(LEFT, 22, title, size=24)
    apart = 0.0 if distance.served is None else APART
    series: Series = [(distance.reference, None, REFERENCE, -apart)]
    if distance.served is not None:
        series.append((distance.served, SERVED_FILL, SERVED, apart))
    _draw_legend(canvas, series)
    largest = max(max(heads) for numbers, *_ in series for heads in numbers.distance)
    ticks = nice_ticks(max(largest, 1.0))
    _draw_layers(canvas, len(distance.reference.distance))
    _draw_distances(canvas, ticks, distance.patch_size)
    for numbers, fill, outline, moved in series:
        for layer, heads in enumerate(numbers.distance):
            x = _across(layer + moved, len(numbers.distance))
            for value in heads:
                canvas.dot(x, _down(value, ticks[-1]), radius=RADIUS, fill=fill, outline=outline)
    return canvas.png()


def nice_ticks(largest: float, *, most: int = 8) -> list[float]:
    """From 0 in steps of 1, 2 or 5 times a power of ten to `largest` > 0 or just over, at most `most` steps."""
    power = 10 ** math.floor(math.log10(largest / most))
    step = next(s * power for s in (1, 2, 5, 10) if s * power * most >= largest)
    return [i * step for i in range(math.ceil(round(largest / step, 9)) + 1)]


def _draw_legend(canvas: Canvas, series: Series) -> None:
    x = float(LEFT)
    for (numbers, fill, outline, _), kind in zip(series, ("reference", "served"), strict=False):
        text = f"{numbers.pictures:,} {kind} image{'s' * (numbers.pictures != 1)}"
        canvas.dot(x + RADIUS, 70, radius=RADIUS, fill=fill, outline=outline)
        canvas.text(x + 20, 70, text, size=16, anchor="lm")
        x += 20 + text_width(text, size=16) + 28
    canvas.text(RIGHT, 70, "a dot is one head", size=16, anchor="rm", color=REFERENCE)


def _draw_layers(canvas: Canvas, layers: int) -> None:
    canvas.line(LEFT, BOTTOM, RIGHT, BOTTOM)
    for layer in range(0, layers, math.ceil(layers / MAX_LAYER_NAMES)):
        x = _across(layer, layers)
        canvas.line(x, BOTTOM, x, BOTTOM + 6)
        canvas.text(x, BOTTOM + 12, str(layer), size=16, anchor="ma")
    canvas.text((LEFT + RIGHT) / 2, HEIGHT - 38, "Network depth (layer)", size=18, anchor="ma")


def _draw_distances(canvas: Canvas, ticks: list[float], patch_size: int) -> None:
    """In patches on the left with a grid, in pixels on the right."""
    top = ticks[-1]
    for value in ticks:
        y = _down(value, top)
        canvas.line(LEFT, y, RIGHT, y, color=FAINT if value else INK)
        canvas.text(LEFT - 12, y, f"{value:g}", size=16, anchor="rm")
    for value in nice_ticks(top * patch_size):
        y = _down(value / patch_size, top)
        if y < TOP - 0.5:
            break  # the last tick may lie above the plot
        canvas.line(RIGHT, y, RIGHT + 6, y)
        canvas.text(RIGHT + 12, y, f"{value:g}", size=16, anchor="lm")
    canvas.line(LEFT, TOP, LEFT, BOTTOM)
    canvas.line(RIGHT, TOP, RIGHT, BOTTOM)
    middle = (TOP + BOTTOM) / 2
    canvas.upward_text(26, middle, "Mean attention distance (patches)", size=18)
    canvas.upward_text(WIDTH - 24, middle, f"Pixels ({patch_size} a patch)", size=18)


def _across(layer: float, layers: int) -> float:
    """Leaves half a layer free on either side."""
    return LEFT + (layer + 0.5) / layers * (RIGHT - LEFT)


def _down(value: float, top: float) -> float:
    return BOTTOM - value / top * (BOTTOM - TOP)
