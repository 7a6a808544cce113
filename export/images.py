"""Images that an export is checked on: drawn scenes and plain noise, in sizes and shapes that need every resize."""

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
from PIL import Image

from app.bundle import ImageSpec
from app.images.preprocess import preprocess
from model.demo.shapes import draw

SEED = 7
LONGEST_SIDE = 500  # pixels


def reference_images(count: int) -> Iterator[Image.Image]:
    """`count` RGB images, every third of them noise; the same ones each time."""
    for index in range(count):
        rng = np.random.default_rng([SEED, index])
        width, height = (int(side) for side in rng.integers(40, LONGEST_SIDE, 2))
        if index % 3 == 2:
            yield Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))
        else:
            yield Image.fromarray(draw(rng, size=(width, height)).pixels)


def reference_pixels(spec: ImageSpec, count: int) -> npt.NDArray[np.uint8]:
    """The first `count` of them as the service prepares them, (count, height, width, 3)."""
    return pixels(spec, reference_images(count))


def pixels(spec: ImageSpec, images: Iterable[Image.Image]) -> npt.NDArray[np.uint8]:
    """The network's input, uint8 (B, height, width, 3), by the service's own preprocessing."""
    return np.stack([preprocess(image, spec.framing)[0] for image in images])
