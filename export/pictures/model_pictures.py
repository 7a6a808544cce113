"""The pictures of a model itself, in the order in which the service lists them."""

import numpy as np
import numpy.typing as npt

from export.pictures.distance import distance
from export.pictures.filters import filters
from export.pictures.picture import Picture
from export.pictures.relative_bias import relative_bias
from export.pictures.similarity import positions
from model.vit import VisionTransformer


def model_pictures(model: VisionTransformer, distances: npt.NDArray[np.floating]) -> list[Picture]:
    """The pictures that this model has, given the attention distances of the reference images, (images, L, H)."""
    last = distance(distances, patch_size=model.config.patch_size)
    return [picture for picture in (filters(model), positions(model), relative_bias(model), last) if picture]
