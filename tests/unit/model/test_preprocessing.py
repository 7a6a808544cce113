"""model/preprocessing.py: what is cut off for whole patches, and another size."""

from tests.support.samples import PREPROCESSING


def test_pixels_outside_whole_patches_are_cut_off_and_another_size_has_none():
    recipe = PREPROCESSING.resized((37, 39)).in_patches(8)
    assert (recipe.size, recipe.remainder, recipe.resize_size) == ((32, 32), (5, 7), (37, 39))
    larger = recipe.resized((74, 78))
    assert (larger.size, larger.remainder, larger.resize_size) == ((74, 78), (0, 0), (74, 78))
