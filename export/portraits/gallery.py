"""Every picture that a model has of itself, in the order in which they are shown."""

import numpy as np
import numpy.typing as npt

from export.portraits.distances import reference_distance
from export.portraits.filters import filters
from export.portraits.portrait import Portrait
from export.portraits.relative_bias import relative_bias
from export.portraits.similarity import positions
from model.vit import VisionTransformer


def portraits(model: VisionTransformer, distance: npt.NDArray[np.floating]) -> list[Portrait]:
    """Those that there are for this model, given the attention distance of some images, (images, L, H)."""
    known = reference_distance(distance, patch_size=model.config.patch_size)
    return [portrait for portrait in (filters(model), positions(model), relative_bias(model), known) if portrait]
