"""Pictures that an export is checked on: drawn scenes and plain noise, in sizes and shapes that need every resize."""

from collections.abc import Iterator

import numpy as np
from PIL import Image

from model.demo.shapes import draw

SEED = 7
LONGEST_SIDE = 500  # pixels


def reference_pictures(count: int) -> Iterator[Image.Image]:
    """`count` RGB pictures, every third of them noise; the same ones each time."""
    for index in range(count):
        rng = np.random.default_rng([SEED, index])
        width, height = (int(side) for side in rng.integers(40, LONGEST_SIDE, 2))
        if index % 3 == 2:
            yield Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))
        else:
            yield Image.fromarray(draw(rng, size=(width, height)).pixels)
