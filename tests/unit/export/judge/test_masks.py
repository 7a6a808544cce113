"""export/judge/masks.py: which patches show the object, in the part that the network sees."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from app.bundle import load_bundle
from app.settings import DEMO_BUNDLE
from export.judge.masks import Masks

DEMO = load_bundle(DEMO_BUNDLE).manifest  # 64 x 64 pixels, 8 x 8 patches, cut from the middle
SIZE = (128, 64)  # the network sees columns 32 to 95


def on_object(folder: Path, left: int, top: int, width: int, height: int):
    mask = np.zeros(SIZE[::-1], np.uint8)
    mask[top : top + height, left : left + width] = 255
    place = folder / "a" / "b.png"
    place.parent.mkdir()
    Image.fromarray(mask).save(place)
    return Masks.of(folder, DEMO).on_object(Path("a/b.jpg"), SIZE)


@pytest.mark.parametrize(
    ("box", "expected"),
    [
        ((32, 0, 16, 8), [0, 1]),
        ((32, 0, 12, 8), [0, 1]),  # half of the second
        ((32, 0, 11, 8), [0]),
        ((40, 8, 3, 3), [9]),  # less than half, and more than in any other
        ((0, 0, 33, 8), [0]),
    ],
)
def test_a_patch_is_on_the_object_if_half_of_it_is_or_as_much_as_of_any_other(tmp_path, box, expected):
    assert np.flatnonzero(on_object(tmp_path, *box)).tolist() == expected


def test_nothing_is_known_of_an_image_without_a_mask_or_whose_object_is_cut_off(tmp_path):
    assert on_object(tmp_path, 0, 0, 20, 64) is None
    assert Masks.of(tmp_path, DEMO).on_object(Path("a/c.jpg"), SIZE) is None


def test_a_mask_of_another_size_is_refused(tmp_path):
    on_object(tmp_path, 0, 0, 20, 64)
    with pytest.raises(ValueError, match=r"b\.png has 128 x 64 pixels, and its image 64 x 64$"):
        Masks.of(tmp_path, DEMO).on_object(Path("a/b.jpg"), (64, 64))
