"""The pictures of a model itself, in the order in which the service lists them."""

import numpy as np
import numpy.typing as npt

from app.drawing.chart import draw_distance
from app.maps.distance import DISTANCE, AttentionDistance, MeanDistance
from export.pictures.filters import filters
from export.pictures.picture import Picture
from export.pictures.relative_bias import relative_bias
from export.pictures.similarity import positions
from model.vit import VisionTransformer


def model_pictures(model: VisionTransformer, distance: npt.NDArray[np.floating]) -> list[Picture]:
    """The pictures that this model has, given the attention distance of the reference images, (images, L, H)."""
    mean = MeanDistance(pictures=len(distance), distance=distance.mean(axis=0, dtype=np.float64).tolist())
    numbers = AttentionDistance(reference=mean, served=None, patch_size=model.config.patch_size)
    title = "Mean attention distance by layer and head"  # paper, Fig. 7 right
    png = draw_distance(title, numbers)
    last = Picture(name=DISTANCE, title=title, png=png, numbers=numbers.model_dump())
    return [picture for picture in (filters(model), positions(model), relative_bias(model), last) if picture]
