"""Images as arrays of pixels, and the class of each."""

from dataclasses import dataclass

import torch
from torch import Tensor

from model.preprocessing import Preprocessing


@dataclass(frozen=True, kw_only=True)
class Samples:
    """Raises ValueError for arrays of another shape or type, or that differ in length."""

    pixels: Tensor  # uint8 (N, height, width, 3), RGB; it may be a memory map, and is read a batch at a time
    classes: Tensor  # int64 (N,), from 0
    digest: str = ""  # of the files that they were read from, if it is known
    groups: Tensor | None = None  # int64 (N,), of near-copies (see near_copies); None: no image has any
    features: Tensor | None = None  # float32 (N, F), what the head of a probe reads, if it has been read

    def __post_init__(self) -> None:
        if self.pixels.dtype != torch.uint8 or self.pixels.ndim != 4 or self.pixels.shape[3] != 3:
            raise ValueError(
                f"pixels must be uint8 (N, height, width, 3), not {self.pixels.dtype} {tuple(self.pixels.shape)}"
            )
        if self.classes.dtype != torch.int64 or self.classes.shape != self.pixels.shape[:1]:
            raise ValueError(
                f"classes must be int64 ({len(self.pixels)},), not {self.classes.dtype} {tuple(self.classes.shape)}"
            )

    def __len__(self) -> int:
        return len(self.classes)

    @property
    def size(self) -> tuple[int, int]:
        """(height, width) of the images in pixels."""
        height, width = self.pixels.shape[1:3]
        return height, width


def count_classes(train: Samples) -> int:
    """The number of classes. Raises ValueError unless there are two, each with an image to learn from."""
    images = torch.bincount(train.classes)  # raises for a negative class
    if len(images) < 2:
        raise ValueError("there must be images of at least two classes to learn from")
    if missing := (images == 0).nonzero().flatten().tolist():
        raise ValueError(f"there is no image to learn from of class {', '.join(map(str, missing))}")
    return len(images)


def check_sizes(preprocessing: Preprocessing, *of: Samples | None) -> None:
    """Raises ValueError unless the images have the size of the network's input."""
    for samples in of:
        if samples is not None and samples.size != preprocessing.size:
            raise ValueError(f"the images are {samples.size}, and the network takes {preprocessing.size}")
