"""export/pictures/distances.py: tests/unit/export/test_reference.py holds the distances themselves."""

import numpy as np

from app.maps.distance import AttentionDistance
from export.pictures.distances import reference_distance


def test_the_picture_is_the_mean_over_every_image():
    of_images = np.arange(5)[:, None, None] * np.array([[[1.0], [2.0], [3.0]]])
    found = reference_distance(of_images, patch_size=8)
    numbers = AttentionDistance.model_validate(found.numbers)
    assert numbers.reference.pictures == 5
    assert numbers.reference.distance == [[2], [4], [6]]
    assert (numbers.served, numbers.unit, numbers.patch_size) == (None, "patches", 8)
