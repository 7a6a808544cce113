"""export/pictures/model_pictures.py: which pictures a model has. test_reference.py holds the distances themselves."""

import numpy as np

from export.pictures.model_pictures import model_pictures
from tests.support.toy import toy_checkpoint


def test_a_model_has_the_pictures_of_what_is_in_it():
    pictures = model_pictures(toy_checkpoint(relative_bias=True).model, np.ones((5, 3, 1)))
    assert [picture.name for picture in pictures] == ["filters", "positions", "relative_bias", "distance"]
    assert pictures[-1].numbers["patch_size"] == 8
