"""Images that an export is checked on: drawn scenes and plain noise, in sizes and shapes that need every resize.

They stand in for a person's own images, which are in export/folder.py.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
from PIL import Image

from app.images.preprocess import ImageSpec, preprocess
from app.inference.engine import Pixels
from model.shapes import LABELS, draw, held_out

SEED = 7
LONGEST_SIDE = 500  # pixels
RANGES, JUDGED = 24, 96
HELD_OUT = 2000  # of the demo, whose labels are known


class Images(Protocol):
    """Images to measure with, as the service prepares them: each is uint8 (height, width, 3)."""

    source: Literal["drawn", "folder"]
    labelled: bool
    range_images: int  # how many there are
    judged_images: int

    def ranges(self) -> Pixels:
        """(n, height, width, 3): images from which ranges are taken. None of them is judged."""
        ...

    def judged(self) -> Iterator[tuple[Pixels, int]]:
        """Images on which answers are compared, in no order of labels, each with the index of its label, or -1."""
        ...


class DrawnImages:
    """The reference images; for a model whose labels are the demo's shapes, the demo's held-out images are judged."""

    source: Literal["drawn", "folder"] = "drawn"
    range_images = RANGES

    def __init__(self, spec: ImageSpec, *, labels: tuple[str, ...]) -> None:
        self._spec = spec
        self.labelled = labels == LABELS
        self.judged_images = HELD_OUT if self.labelled else JUDGED

    def ranges(self) -> Pixels:
        return reference_pixels(self._spec, RANGES)

    def judged(self) -> Iterator[tuple[Pixels, int]]:
        labelled = _held_out() if self.labelled else islice(_unlabelled(), RANGES, None)
        return ((preprocess(image, self._spec)[0], label) for image, label in labelled)


def _held_out() -> Iterator[tuple[Image.Image, int]]:
    return ((Image.fromarray(sample.pixels), sample.label) for sample in held_out(HELD_OUT))


def _unlabelled() -> Iterator[tuple[Image.Image, int]]:
    return ((image, -1) for image in reference_images(RANGES + JUDGED))


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
    return np.stack([preprocess(image, spec)[0] for image in images])
