"""What the service goes on with once an image is decoded."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.images.preprocess import Box


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """One image: what the network sees of it, and what maps are drawn on."""

    pixels: npt.NDArray[np.uint8]  # (height, width, 3) of the network's input
    size: tuple[int, int]  # width, height of the upright image
    box: Box  # the part of it that the network sees, in its pixels
    format: str
    thumbnail: bytes  # JPEG of the upright image, scaled down; empty where none was wanted

    @property
    def nbytes(self) -> int:
        return self.pixels.nbytes + len(self.thumbnail)
