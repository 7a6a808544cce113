"""What is kept of one picture."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.images.preprocess import Box
from app.inference.labels import Prediction
from app.maps import Maps


@dataclass(frozen=True, kw_only=True)
class Record:
    """What one forward pass said about one picture, and the picture to draw it on."""

    maps: Maps
    predictions: tuple[Prediction, ...]  # of the classes that the maps tell of, most likely first
    image_size: tuple[int, int]  # width, height of the upright original
    box: Box  # what the network saw, in pixels of the upright original
    pixels: npt.NDArray[np.uint8]  # (height, width, 3) that the network saw
    thumbnail: bytes  # JPEG of the upright original, scaled down

    @property
    def nbytes(self) -> int:
        return self.maps.nbytes + self.pixels.nbytes + len(self.thumbnail)
