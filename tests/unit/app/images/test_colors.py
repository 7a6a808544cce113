"""app/images/colors.py: pixel values of every kind of image in the catalogue."""

import numpy as np
import pytest
from PIL import Image

from app.images.colors import upright_rgb
from app.images.decode import Limits, opened
from tests.catalogue.case import SIZE, Case
from tests.catalogue.every import CASES

LIMITS = Limits(max_pixels=50_000_000, max_aspect_ratio=64)
SHOWN = [case for case in CASES.values() if case.shows]


def pixels(data: bytes) -> np.ndarray:
    with opened(data, LIMITS) as (image, _):
        return np.asarray(upright_rgb(image)).astype(int)


@pytest.mark.parametrize("case", SHOWN, ids=lambda case: case.name)
@pytest.mark.filterwarnings("ignore")  # as in a worker; Pillow warns about odd images
def test_valid_images_show_what_they_should(case: Case):
    found = pixels(case.make())
    height, width = found.shape[:2]
    assert (width, height) == SIZE
    centres = found[height // 4 :: height // 2, width // 4 :: width // 2].reshape(4, 3)
    assert np.abs(centres - case.shows).max() <= case.tolerance, centres.tolist()


def test_half_transparency_is_mixed_with_white(encode):
    assert np.abs(pixels(encode(Image.new("RGBA", (2, 2), (0, 0, 0, 128)))) - 127).max() <= 1


def test_sixteen_bits_are_scaled_not_clipped(encode):
    ramp = np.linspace(0, 65535, 16, dtype=np.uint16).reshape(4, 4)
    expected = np.rint(ramp / 257).astype(int)
    for format in ("PNG", "TIFF"):
        assert (pixels(encode(Image.fromarray(ramp), format))[..., 0] == expected).all()


def test_an_image_of_many_rows_is_converted_like_one_of_few(encode):
    ramp = np.arange(300, dtype=np.uint16)[:, None].repeat(8, 1) * 218
    assert (pixels(encode(Image.fromarray(ramp)))[..., 0] == np.rint(ramp / 257)).all()


def test_float_gray_is_scaled(encode):
    ramp = np.linspace(0, 1, 4, dtype=np.float32).reshape(2, 2)
    assert (pixels(encode(Image.fromarray(ramp), "TIFF"))[..., 0] == [[0, 85], [170, 255]]).all()
