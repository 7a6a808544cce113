"""Mean attention distance by layer and head: how far a patch reads (paper, Fig. 7 right and Fig. 11)."""

from typing import Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel

DISTANCE = "distance"  # its name among the model's own pictures: the one that changes while the service runs


class MeanDistance(BaseModel):
    """Over some pictures."""

    pictures: int
    distance: list[list[float]]  # of each layer, of each head


class AttentionDistance(BaseModel):
    """Over the pictures of the export, and over those that this process has explained since it started."""

    reference: MeanDistance
    served: MeanDistance | None
    unit: Literal["patches"] = "patches"
    patch_size: int  # pixels


class RunningDistance:
    """Mean over what was added, kept as a sum in float64. Belongs to the event loop."""

    def __init__(self, *, layers: int, heads: int) -> None:
        self._sum = np.zeros((layers, heads))
        self._pictures = 0

    def add(self, distance: npt.NDArray[np.floating]) -> None:
        """(layers, heads) of one picture."""
        self._sum += distance
        self._pictures += 1

    def mean(self) -> MeanDistance | None:
        """None before anything was added."""
        if not self._pictures:
            return None
        return MeanDistance(pictures=self._pictures, distance=(self._sum / self._pictures).tolist())
