"""app/images/colors.py: type and pixel values of every kind of image in the catalogue."""

import numpy as np
import pytest
from PIL import Image

from app.images.colors import upright_rgb
from app.images.decode import Limits, opened
from tests.catalogue.case import SIZE, Case
from tests.catalogue.every import CASES

LIMITS = Limits(max_pixels=50_000_000, max_aspect_ratio=64)
SHOWN = [case for case in CASES.values() if case.shows]


def decoded(data: bytes) -> tuple[np.ndarray, str]:
    with opened(data, LIMITS) as (image, name):
        return np.asarray(upright_rgb(image)).astype(int), name


@pytest.mark.parametrize("case", SHOWN, ids=lambda case: case.name)
@pytest.mark.filterwarnings("ignore")  # as in a worker; Pillow warns about odd images
def test_valid_images_show_what_they_should(case: Case):
    pixels, name = decoded(case.make())
    height, width = pixels.shape[:2]
    assert case.name.startswith(name)
    assert (width, height) == SIZE
    centres = pixels[height // 4 :: height // 2, width // 4 :: width // 2].reshape(4, 3)
    assert np.abs(centres - case.shows).max() <= case.tolerance, centres.tolist()


@pytest.mark.parametrize("format", ["PNG", "TIFF"])
def test_sixteen_bits_are_scaled_not_clipped_in_an_image_of_many_rows(encode, format):
    ramp = np.arange(300, dtype=np.uint16)[:, None].repeat(8, 1) * 218
    pixels, _ = decoded(encode(Image.fromarray(ramp), format))
    assert (pixels[..., 0] == np.rint(ramp / 257)).all()


def test_every_gray_of_cielab_has_no_colour(encode):
    flat = Image.new("L", (256, 1), 128)  # in memory, where both signs are moved up
    levels = Image.fromarray(np.arange(256, dtype=np.uint8)[None])
    pixels, _ = decoded(encode(Image.merge("LAB", (levels, flat, flat)).resize((256, 16)), "TIFF"))
    assert np.ptp(pixels, axis=-1).max() == 0
    assert (pixels[0, 0, 0], pixels[0, -1, 0]) == (0, 255)
