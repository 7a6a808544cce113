"""The attention distance by layer and head, over the reference images (paper, Fig. 7 right)."""

import numpy as np
import numpy.typing as npt

from app.drawing.chart import draw_distance
from app.maps.distance import DISTANCE, AttentionDistance, MeanDistance
from export.picture import Picture


def reference_distance(distance: npt.NDArray[np.floating], *, patch_size: int) -> Picture:
    """The mean of what the explaining graph gives for each image, (images, L, H)."""
    mean = MeanDistance(pictures=len(distance), distance=distance.mean(axis=0, dtype=np.float64).tolist())
    numbers = AttentionDistance(reference=mean, served=None, patch_size=patch_size)
    title = "Mean attention distance by layer and head"
    return Picture(name=DISTANCE, title=title, png=draw_distance(title, numbers), numbers=numbers.model_dump())
