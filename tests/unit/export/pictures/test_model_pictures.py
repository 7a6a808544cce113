"""export/pictures/model_pictures.py: which pictures a model has. test_reference.py holds the distances themselves."""

import numpy as np

from app.maps.distance import AttentionDistance
from export.pictures.model_pictures import model_pictures
from tests.support.toy import toy_checkpoint


def test_the_last_picture_is_the_mean_distance_over_every_image():
    of_images = np.arange(5)[:, None, None] * np.array([[[1.0], [2.0], [3.0]]])
    pictures = model_pictures(toy_checkpoint(relative_bias=True).model, of_images)
    assert [picture.name for picture in pictures] == ["filters", "positions", "relative_bias", "distance"]
    numbers = AttentionDistance.model_validate(pictures[-1].numbers)
    assert (numbers.reference.pictures, numbers.reference.distance) == (5, [[2], [4], [6]])
    assert (numbers.served, numbers.patch_size) == (None, 8)
