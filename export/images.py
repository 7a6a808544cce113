"""Images that an export is measured with: drawn scenes and plain noise, in sizes and shapes that need every resize.

A person's own images are in export/folder.py.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

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


@dataclass(frozen=True, kw_only=True)
class Images:
    """Images to measure with, as the service prepares them, uint8 (n, height, width, 3)."""

    source: Literal["drawn", "folder"]
    ranges: Pixels  # from which ranges are taken; none of them is judged
    judged: Pixels  # on which answers are compared, in no order of labels
    labels: npt.NDArray[np.int64] | None  # index of the label of each judged image
    files: tuple[Path, ...] = ()  # of those for ranges, and then of the judged ones; none if they are drawn
    summary: str = ""  # how many there are, for a person
    seen: float = 1.0  # the share of an image that the crop leaves, in the mean
    unlabelled: str = ""  # why there are no labels, where folders may have been meant so


def drawn_images(spec: ImageSpec, *, labels: tuple[str, ...]) -> Images:
    """The reference images; for a model whose labels are the demo's shapes, the demo's held-out images are judged."""
    if labels != LABELS:
        ranges, judged = np.split(reference_pixels(spec, RANGES + JUDGED), [RANGES])
        return Images(source="drawn", ranges=ranges, judged=judged, labels=None)
    samples = [*held_out(HELD_OUT)]
    return Images(
        source="drawn",
        ranges=reference_pixels(spec, RANGES),
        judged=pixels(spec, (Image.fromarray(sample.pixels) for sample in samples)),
        labels=np.array([sample.label for sample in samples]),
    )


def reference_images(count: int) -> Iterator[Image.Image]:
    """`count` RGB images, every third of them noise; the same ones each time."""
    return map(_reference_image, range(count))


@cache  # an export needs the first ones several times; one takes 10 ms to draw
def _reference_image(index: int) -> Image.Image:
    rng = np.random.default_rng([SEED, index])
    width, height = (int(side) for side in rng.integers(40, LONGEST_SIDE, 2))
    if index % 3 == 2:
        return Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))
    return Image.fromarray(draw(rng, size=(width, height)).pixels)


def reference_pixels(spec: ImageSpec, count: int) -> npt.NDArray[np.uint8]:
    """The first `count` of them as the service prepares them, (count, height, width, 3)."""
    return pixels(spec, reference_images(count))


def pixels(spec: ImageSpec, images: Iterable[Image.Image]) -> npt.NDArray[np.uint8]:
    """The network's input, uint8 (B, height, width, 3), by the service's own preprocessing."""
    return np.stack([preprocess(image, spec)[0] for image in images])
