"""From an upright RGB image to the graph's input, as the manifest says. Export checks this same code.

Normalisation is not here: it is folded into the graph, which takes 8-bit pixels.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from annotated_types import Interval
from PIL import Image

from app.images.resize import resized_crop

Side = Annotated[int, Interval(ge=1, le=16384)]
Rest = Annotated[int, Interval(ge=0, le=16384)]
CHECKED = {  # how pydantic reads these, which workers do without
    "extra": "forbid",
    "revalidate_instances": "always",
    "json_schema_extra": lambda schema: schema.pop("additionalProperties"),  # as in app/bundle.py
}


@dataclass(frozen=True, kw_only=True)
class Resize:
    """`shortest` scales until the image just covers `size`; `squash` scales each side to `size`."""

    __pydantic_config__ = CHECKED

    mode: Literal["shortest", "squash"]
    size: tuple[Side, Side]  # height, width


@dataclass(frozen=True, kw_only=True)
class ImageSpec:
    """How an upright RGB image becomes the graph's input. Mean and std are folded into the graph."""

    __pydantic_config__ = CHECKED

    size: tuple[Side, Side]  # height, width of the input in pixels
    resize: Resize
    crop: Literal["center", "none"]
    crop_rounding: Literal["half_even", "floor"] = "half_even"  # where the margin is an odd number of pixels
    remainder: tuple[Rest, Rest] = (0, 0)  # height, width of the crop at its bottom and right that fit no patch
    interpolation: Literal["nearest", "bilinear", "bicubic", "lanczos", "box", "hamming", "bilinear_sampled"]
    mean: tuple[float, float, float]
    std: tuple[float, float, float]

    def __post_init__(self) -> None:
        cropped = tuple(side + rest for side, rest in zip(self.size, self.remainder, strict=True))
        if any(side > resized for side, resized in zip(cropped, self.resize.size, strict=True)):
            raise ValueError("the crop is larger than the resized image")
        if self.crop == "none" and (self.resize.mode != "squash" or cropped != self.resize.size):
            raise ValueError("without a crop the resize must give the size of the input")


class Box(NamedTuple):
    """A part of an image, in its pixels. Edges may fall between pixels."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, kw_only=True)
class PreprocessedImage:
    """One image: what the network sees of it, and what maps are drawn on."""

    pixels: npt.NDArray[np.uint8]  # (height, width, 3) of the network's input
    size: tuple[int, int]  # width, height of the upright image
    box: Box  # the part of it that the network sees, in its pixels
    format: str
    thumbnail: bytes  # JPEG of the upright image, scaled down; empty where none was wanted


class Geometry(NamedTuple):
    """Where the network's input lies in an image."""

    resized: tuple[int, int]  # width, height after the resize
    offset: tuple[int, int]  # left, top of the crop in the resized image
    box: Box  # the crop in the pixels of the original


def geometry(size: tuple[int, int], spec: ImageSpec) -> Geometry:
    """Geometry for an image of `size` (width, height)."""
    width, height = size
    if spec.resize.mode == "shortest" and len(set(spec.resize.size)) > 1:
        shrink = min(height / spec.resize.size[0], width / spec.resize.size[1])
        resized = (round(width / shrink), round(height / shrink))  # both rounded, as timm's ResizeKeepRatio does
    elif spec.resize.mode == "shortest":
        short = min(spec.resize.size)  # the long side is cut to an integer, as torchvision and timm do
        long = int(short * max(size) / min(size))
        resized = (short, long) if width <= height else (long, short)
    else:
        resized = (spec.resize.size[1], spec.resize.size[0])
    rows, columns = spec.size
    to_pixel: Callable[[float], int] = math.floor if spec.crop_rounding == "floor" else round  # that is half to even
    below, beside = spec.remainder
    left, top = to_pixel((resized[0] - columns - beside) / 2), to_pixel((resized[1] - rows - below) / 2)
    x, y = width / resized[0], height / resized[1]
    box = Box(left * x, top * y, min((left + columns) * x, width), min((top + rows) * y, height))
    return Geometry(resized, (left, top), box)


def preprocess(image: Image.Image, spec: ImageSpec) -> tuple[npt.NDArray[np.uint8], Box]:
    """The network's input, uint8 (height, width, 3), and where it lies in `image`."""
    resized, (left, top), box = geometry(image.size, spec)
    rows, columns = spec.size
    if image.size == resized:
        pixels = np.asarray(image)
    elif spec.interpolation == "bilinear_sampled":
        pixels = _sampled(image, resized)
    else:
        resampling = Image.Resampling[spec.interpolation.upper()]
        return resized_crop(image, resized, (left, top), (columns, rows), resampling), box
    if pixels.shape[:2] != (rows, columns):  # a copy, because a slice would keep the whole image in memory
        pixels = pixels[top : top + rows, left : left + columns].copy()
    return pixels, box


def _sampled(image: Image.Image, size: tuple[int, int]) -> npt.NDArray[np.uint8]:
    pixels = np.asarray(image)
    across = _mixed(pixels.transpose(1, 0, 2), size[0]).transpose(1, 0, 2)
    return np.rint(_mixed(across, size[1])).astype(np.uint8)


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
