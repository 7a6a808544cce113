"""Random resized crops and flips (paper, appendix B.1: Inception's crops), of a whole batch at a time."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """Raises ValueError for shares that are out of range."""

    least_area: float = 0.8  # of the image, in a crop; the largest is all of it
    most_aspect: float = 4 / 3  # width to height of a crop, and height to width, both relative to the image's own
    flip: bool | None = None  # left to right, every second image; None: what fine-tuning finds out, else not

    def __post_init__(self) -> None:
        if not 0 < self.least_area <= 1:
            raise ValueError(f"least_area must be above 0 and at most 1, not {self.least_area}")
        if not self.most_aspect >= 1:
            raise ValueError(f"most_aspect must be at least 1, not {self.most_aspect}")


FROM_NOTHING = Augmentation(least_area=0.25, flip=False)  # what is learned from nothing is sooner learned by heart


def augmented(pixels: Tensor, size: tuple[int, int], augmentation: Augmentation, generator: torch.Generator) -> Tensor:
    """Pixels uint8 (B, H, W, 3) to float32 (B, 3, height, width) from 0 to 255, for `size` (height, width).

    Bilinear, without a filter: images about as large as the network's input lose nothing by it.
    """
    area, aspect, right, down, mirror = torch.rand(5, len(pixels), generator=generator).to(pixels.device)
    area = augmentation.least_area + (1 - augmentation.least_area) * area
    aspect = augmentation.most_aspect ** (2 * aspect - 1)  # log-uniform
    across, along = (area * aspect).sqrt().clamp(max=1), (area / aspect).sqrt().clamp(max=1)  # shares of the sides
    sign = torch.where(mirror < 0.5, -1.0, 1.0) if augmentation.flip else torch.ones_like(mirror)
    affine = torch.zeros(len(pixels), 2, 3, device=pixels.device)  # output to input, both from -1 to 1
    affine[:, 0, 0], affine[:, 1, 1] = sign * across, along
    affine[:, 0, 2], affine[:, 1, 2] = (2 * right - 1) * (1 - across), (2 * down - 1) * (1 - along)
    grid = F.affine_grid(affine, [len(pixels), 3, *size], align_corners=False)
    return F.grid_sample(
        pixels.permute(0, 3, 1, 2).float(), grid, mode="bilinear", padding_mode="border", align_corners=False
    )
