"""CPU time of each kind of drawing: a 14 x 14 grid on a grainy image of 512 x 512."""

import statistics
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from typing import Any

import numpy as np
from PIL import Image

from app.drawing.heatmap import Style, draw
from app.drawing.scale import limits
from app.drawing.wall import draw_wall
from app.images.preprocess import Box
from model.shapes import draw as draw_shape
from tests.benchmarks.record import Rows
from tests.benchmarks.rounds import cpu_ms
from tests.support.records import make_prepared

SIDE, SEEN, GRID = 512, 224, (14, 14)
LAYERS, HEADS = 12, 12
ROUNDS = 25
PLAIN = Style(overlay=True, alpha=0.6, colormap=None, interpolation="bilinear", colorbar=False)


def measure() -> Rows:
    rng = np.random.default_rng(0)
    heads = rng.dirichlet(np.ones(GRID[0] * GRID[1]), (LAYERS, HEADS)).astype(np.float32).reshape(LAYERS, HEADS, *GRID)
    scene = draw_shape(rng, size=(SIDE, SIDE)).pixels + rng.normal(0, 12, (SIDE, SIDE, 3))
    image = Image.fromarray(np.clip(scene, 0, 255).astype(np.uint8))
    thumbnail = BytesIO()
    image.save(thumbnail, "JPEG", quality=85)
    prepared = make_prepared(
        size=image.size,
        box=Box(32, 32, SIDE - 32, SIDE - 32),
        pixels=np.asarray(image.resize((SEEN, SEEN))),
        thumbnail=thumbnail.getvalue(),
    )

    ends = limits(heads, heads, "shared", signed=False)

    def one_map(**changes: Any) -> Callable[[], bytes]:
        return lambda: draw(heads[0, 0], prepared, replace(PLAIN, **changes), ends)

    def wall(**changes: Any) -> Callable[[], bytes]:
        return lambda: draw_wall(heads, prepared, replace(PLAIN, **changes), ends)

    drawings = {
        "map on the image": one_map(),
        "map on the image, nearest": one_map(interpolation="nearest"),
        "map on the image, colour bar and contour": one_map(colorbar=True, threshold=0.5),
        "map alone": one_map(overlay=False),
        "wall of 12 × 12, nearest": wall(overlay=False, interpolation="nearest"),
        "wall of 12 × 12": wall(overlay=False),
        "wall of 12 × 12 on the image": wall(),
    }
    return [
        {
            "drawing": name,
            "CPU ms": round(statistics.median(cpu_ms(render) for _ in range(ROUNDS)), 1),
            "KiB": len(render()) // 1024,
        }
        for name, render in drawings.items()
    ]
