"""Mean attention distance by layer, a dot for each head: how far a patch reads (paper, Fig. 7 right and Fig. 11)."""

import math

import numpy as np
import numpy.typing as npt

from export.pictures.canvas import FAINT, INK, Canvas
from export.pictures.picture import Picture
from export.pictures.ticks import nice_ticks

WIDTH, HEIGHT = 960, 600
LEFT, TOP, RIGHT, BOTTOM = 90, 96, 870, 520  # of the plot
RADIUS = 5.5
GREY = (110, 118, 126)
MAX_LAYER_NAMES = 24


def distance(of_images: npt.NDArray[np.floating], *, patch_size: int) -> Picture:
    """The mean over images of their distances in patches, (images, L, H). The PNG has 960 x 600 pixels."""
    title = "Mean attention distance by layer and head"
    mean = of_images.mean(axis=0, dtype=np.float64)
    return Picture(
        name="distance",
        title=title,
        png=_drawn(title, mean, images=len(of_images), patch_size=patch_size),
        numbers={
            "reference": {"pictures": len(of_images), "distance": mean.tolist()},
            "unit": "patches",
            "patch_size": patch_size,
        },
    )


def _drawn(title: str, mean: npt.NDArray[np.float64], *, images: int, patch_size: int) -> bytes:
    canvas = Canvas(WIDTH, HEIGHT)
    canvas.text(LEFT, 22, title, size=24)
    canvas.dot(LEFT + RADIUS, 70, radius=RADIUS, fill=None, outline=GREY)
    canvas.text(LEFT + 20, 70, f"{images:,} reference image{'s' * (images != 1)}", size=16, anchor="lm")
    canvas.text(RIGHT, 70, "a dot is one head", size=16, anchor="rm", color=GREY)
    ticks = nice_ticks(max(float(mean.max()), 1.0))
    _draw_layers(canvas, len(mean))
    _draw_distances(canvas, ticks, patch_size)
    for layer, heads in enumerate(mean):
        for value in heads:
            place = (_across(layer, len(mean)), _down(value, ticks[-1]))
            canvas.dot(*place, radius=RADIUS, fill=None, outline=GREY)
    return canvas.png()


def _draw_layers(canvas: Canvas, layers: int) -> None:
    canvas.line(LEFT, BOTTOM, RIGHT, BOTTOM)
    for layer in range(0, layers, math.ceil(layers / MAX_LAYER_NAMES)):
        x = _across(layer, layers)
        canvas.line(x, BOTTOM, x, BOTTOM + 6)
        canvas.text(x, BOTTOM + 12, str(layer), size=16, anchor="ma")
    canvas.text((LEFT + RIGHT) / 2, HEIGHT - 38, "Network depth (layer)", size=18, anchor="ma")


def _draw_distances(canvas: Canvas, ticks: list[float], patch_size: int) -> None:
    """Draw the scale: in patches on the left with a grid, in pixels on the right."""
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


def _across(layer: int, layers: int) -> float:
    """Leaves half a layer free on either side."""
    return LEFT + (layer + 0.5) / layers * (RIGHT - LEFT)


def _down(value: float, top: float) -> float:
    return BOTTOM - value / top * (BOTTOM - TOP)
