"""Images that a toy network learns in seconds: the class is the colour of a square somewhere in noise."""

import torch

from model.fit.samples import Samples
from model.preprocessing import Preprocessing

SIZE = (16, 24)
PREPROCESSING = Preprocessing(
    size=SIZE, resize_mode="squash", resize_size=SIZE, crop="none", interpolation="bicubic",
    mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25),
)  # fmt: skip


def squares(count: int, *, seed: int = 0, size: tuple[int, int] = SIZE, contrast: int = 150) -> Samples:
    """Three classes in turn. With little contrast a probe is often wrong."""
    chance = torch.Generator().manual_seed(seed)
    height, width = size
    pixels = torch.randint(100, (count, height, width, 3), dtype=torch.uint8, generator=chance)
    classes = torch.arange(count) % 3
    for image, kind in zip(pixels, classes.tolist(), strict=True):
        top, left = (int(torch.randint(side - 8, (1,), generator=chance)) for side in size)
        image[top : top + 8, left : left + 8, kind] += contrast
    return Samples(pixels=pixels, classes=classes)
