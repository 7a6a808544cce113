"""From an upright RGB image to the graph's input, as the manifest says. Export checks this same code.

Normalisation is not here: it is folded into the graph, which takes 8-bit pixels.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

RESAMPLING = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
    "box": Image.Resampling.BOX,
    "hamming": Image.Resampling.HAMMING,
}


class Framing(NamedTuple):
    """How an upright RGB image becomes the graph's input: the manifest's `image` without mean and std."""

    size: tuple[int, int]  # height, width of the input in pixels
    resize_mode: str  # shortest or squash, see app/bundle.py
    resize_size: tuple[int, int]  # height, width
    crop_rounding: str
    interpolation: str
    remainder: tuple[int, int] = (0, 0)  # height, width of the crop beyond the input, at its bottom and right


class Box(NamedTuple):
    """A part of an image, in its pixels. Edges may fall between pixels."""

    left: float
    top: float
    right: float
    bottom: float


class Geometry(NamedTuple):
    """Where the network's input lies in an image."""

    resized: tuple[int, int]  # width, height after the resize
    offset: tuple[int, int]  # left, top of the crop in the resized image
    box: Box  # the crop in the pixels of the original


def geometry(size: tuple[int, int], framing: Framing) -> Geometry:
    """Geometry for an image of `size` (width, height)."""
    width, height = size
    if framing.resize_mode == "shortest" and len(set(framing.resize_size)) > 1:
        shrink = min(height / framing.resize_size[0], width / framing.resize_size[1])
        resized = (round(width / shrink), round(height / shrink))  # both rounded, as timm's ResizeKeepRatio does
    elif framing.resize_mode == "shortest":
        short = min(framing.resize_size)  # the long side is cut to an integer, as torchvision and timm do
        resized = (short, max(short, int(short * height / width))) if width <= height else (
            max(short, int(short * width / height)), short
        )  # fmt: skip
    else:
        resized = (framing.resize_size[1], framing.resize_size[0])
    rows, columns = framing.size
    to_pixel: Callable[[float], int] = math.floor if framing.crop_rounding == "floor" else round  # that is half to even
    below, beside = framing.remainder
    left, top = to_pixel((resized[0] - columns - beside) / 2), to_pixel((resized[1] - rows - below) / 2)
    x, y = width / resized[0], height / resized[1]
    box = Box(left * x, top * y, min((left + columns) * x, width), min((top + rows) * y, height))
    return Geometry(resized, (left, top), box)


def preprocess(image: Image.Image, framing: Framing) -> tuple[npt.NDArray[np.uint8], Box]:
    """The network's input, uint8 (height, width, 3), and where it lies in `image`."""
    resized, (left, top), box = geometry(image.size, framing)
    rows, columns = framing.size
    if image.size != resized:
        image = _resize(image, resized, framing)
    pixels = np.asarray(image)
    if pixels.shape[:2] != (rows, columns):  # a copy, because a slice would keep the whole image in memory
        pixels = pixels[top : top + rows, left : left + columns].copy()
    return pixels, box


def _resize(image: Image.Image, size: tuple[int, int], framing: Framing) -> Image.Image:
    if framing.interpolation != "bilinear_sampled":
        return image.resize(size, RESAMPLING[framing.interpolation])
    pixels = np.asarray(image)
    across = _mixed(pixels.transpose(1, 0, 2), size[0]).transpose(1, 0, 2)
    return Image.fromarray(np.rint(_mixed(across, size[1])).astype(np.uint8))


def _mixed(lines: npt.NDArray[Any], count: int) -> npt.NDArray[np.float32]:
    """`count` lines, each mixed from the two of `lines` that its centre falls between.

    This is TensorFlow's bilinear (`tf.image.resize`), which reads two lines however much it shrinks. Pillow's averages
    all lines.
    """
    at = np.clip((np.arange(count) + 0.5) * (len(lines) / count) - 0.5, 0, len(lines) - 1)
    before = np.floor(at).astype(np.intp)
    after = np.minimum(before + 1, len(lines) - 1)
    share = (at - before).astype(np.float32)[:, None, None]
    mixed: npt.NDArray[np.float32] = lines[before] * (1 - share) + lines[after] * share
    return mixed
