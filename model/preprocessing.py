"""How an image becomes the network's input: facts only. The service computes the pixels."""

from dataclasses import asdict, dataclass, replace
from math import isfinite
from typing import Any, Literal, Self

from model.config import check_literals, tuples

Interpolation = Literal["nearest", "bilinear", "bicubic", "lanczos", "box", "hamming", "bilinear_sampled"]
Channels = tuple[float, float, float]  # red, green, blue
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
LARGEST_SIDE = 2**16  # pixels


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """Resize, crop, then (pixel / 255 - mean) / std per RGB channel. Raises ValueError for values out of range."""

    size: tuple[int, int]  # (height, width) of the network's input, pixels
    resize_mode: Literal["shortest", "squash"]  # keep the aspect, or scale both sides regardless of it
    resize_size: tuple[int, int]  # (height, width) to resize to, or with "shortest" just to cover
    crop: Literal["center", "none"]
    interpolation: Interpolation
    mean: Channels
    std: Channels
    crop_rounding: Literal["half_even", "floor"] = "half_even"  # of half a pixel: torchvision and timm, or transformers
    remainder: tuple[int, int] = (0, 0)  # rows at the bottom and columns at the right of the crop that fit no patch

    def __post_init__(self) -> None:
        check_literals(self)
        for name, size in (("image_size", self.size), ("resize_size", self.resize_size)):
            if not all(1 <= side <= LARGEST_SIDE for side in size):
                raise ValueError(f"{name} must be from 1 to {LARGEST_SIDE:,}, not {size!r}")
        if not all(0 <= rest <= LARGEST_SIDE for rest in self.remainder):
            raise ValueError(f"remainder must be from 0 to {LARGEST_SIDE:,}, not {self.remainder!r}")
        if not all(isfinite(mean) for mean in self.mean):
            raise ValueError(f"mean must be finite, not {self.mean!r}")
        if not all(isfinite(std) and std > 0 for std in self.std):
            raise ValueError(f"std must be above 0 and finite, not {self.std!r}")

    @property
    def cropped(self) -> tuple[int, int]:
        """(height, width) of the crop: the network's input and the remainder."""
        (height, width), (below, beside) = self.size, self.remainder
        return height + below, width + beside

    def resized(self, size: tuple[int, int]) -> Self:
        """The same recipe for another (height, width); the crop cuts off the same share."""
        if size == self.size:
            return self
        down, across = (round(r * new / old) for r, new, old in zip(self.resize_size, size, self.cropped, strict=True))
        return replace(self, size=size, resize_size=(down, across), remainder=(0, 0))

    def in_patches(self, patch_size: int) -> Self:
        """The same crop, of which the network's input is what whole patches cover from the top left."""
        height, width = self.cropped
        below, beside = height % patch_size, width % patch_size
        return replace(self, size=(height - below, width - beside), remainder=(below, beside))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Self:
        """Inverse of `to_json`."""
        return cls(**tuples(fields))
