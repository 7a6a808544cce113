"""Mean attention distance by layer and head: how far a patch reads (paper, Fig. 7 right and Fig. 11)."""

from typing import Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel

DISTANCE = "distance"  # its name among the model's pictures of itself; the only one that changes while serving


class MeanDistance(BaseModel):
    """Mean over a number of images."""

    pictures: int  # how many images; bundles name them so
    distance: list[list[float]]  # of each layer, of each head


class AttentionDistance(BaseModel):
    """Over the images of the export, and over the images that this process has explained since it started."""

    reference: MeanDistance
    served: MeanDistance | None
    unit: Literal["patches"] = "patches"
    patch_size: int  # pixels


class RunningDistance:
    """A running mean, kept as a sum in float64. Belongs to the event loop."""

    def __init__(self, *, layers: int, heads: int) -> None:
        self._sum = np.zeros((layers, heads))
        self._images = 0

    def add(self, distance: npt.NDArray[np.floating]) -> None:
        """Add the distances (layers, heads) of one image."""
        self._sum += distance
        self._images += 1

    def mean(self) -> MeanDistance | None:
        """None before the first image."""
        if not self._images:
            return None
        return MeanDistance(pictures=self._images, distance=(self._sum / self._images).tolist())
