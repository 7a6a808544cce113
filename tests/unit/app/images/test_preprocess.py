from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from app.images.preprocess import ImageSpec, Resize, geometry, preprocess
from tests.support.specs import spec_of


def spec(mode: str, resize: tuple[int, int], size: tuple[int, int], interpolation: str = "bicubic") -> ImageSpec:
    return spec_of(size, resize=Resize(mode=mode, size=resize), interpolation=interpolation)


sides = st.integers(1, 400)


@settings(max_examples=200, deadline=None)
@given(width=sides, height=sides, mode=st.sampled_from(["shortest", "squash"]))
def test_the_crop_has_the_inputs_size_and_lies_inside_the_picture(width, height, mode):
    chosen = spec(mode, (40, 48), (24, 32))
    pixels, box = preprocess(Image.new("RGB", (width, height), "teal"), chosen)
    assert pixels.shape == (24, 32, 3)
    assert pixels.dtype == np.uint8
    assert pixels.flags.c_contiguous
    assert (pixels == pixels[0, 0]).all()
    assert 0 <= box.left < box.right <= width
    assert 0 <= box.top < box.bottom <= height


@given(width=st.integers(20, 300), height=st.integers(20, 300))
def test_the_box_has_the_shape_of_the_input_when_aspect_is_kept(width, height):
    box = geometry((width, height), spec("shortest", (64, 64), (48, 48))).box
    scale = min(width, height) / 64
    assert box.right - box.left == pytest.approx(48 * scale, rel=0.05)
    assert box.bottom - box.top == pytest.approx(48 * scale, rel=0.05)
    assert box.left + box.right == pytest.approx(width, abs=1.5 * scale)
    assert box.top + box.bottom == pytest.approx(height, abs=1.5 * scale)


def test_it_is_resize_then_centre_crop():
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (90, 150, 3), dtype=np.uint8))
    pixels, _ = preprocess(noise, spec("shortest", (32, 32), (24, 24), "bilinear"))
    resized = noise.resize((53, 32), Image.Resampling.BILINEAR)  # 150 * 32 / 90 = 53.3
    left = round((53 - 24) / 2)
    assert (pixels == np.asarray(resized.crop((left, 4, left + 24, 28)))).all()


@pytest.mark.parametrize(
    ("rounding", "resized", "left"), [("half_even", 31, 4), ("half_even", 33, 4), ("floor", 31, 3), ("floor", 33, 4)]
)
def test_half_a_pixel_of_margin_is_rounded_as_the_library_does(rounding, resized, left):
    chosen = replace(spec("squash", (resized, resized), (24, 24)), crop_rounding=rounding)
    assert geometry((100, 100), chosen).offset == (left, left)


@pytest.mark.parametrize(
    ("size", "remainder", "seen"),
    [
        ((41, 51), (0, 0), (0, 0, 51, 41)),  # an image of the right size is not touched
        ((32, 40), (5, 3), (4, 2, 44, 34)),  # a crop of 37 x 43 in the middle, and of that 32 x 40 at the top left
    ],
)
def test_the_remainder_is_part_of_the_crop_and_not_of_the_input(size, remainder, seen):
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (41, 51, 3), dtype=np.uint8))
    pixels, box = preprocess(image, replace(spec("squash", (41, 51), size), remainder=remainder))
    assert (pixels == np.asarray(image.crop(seen))).all()
    assert box == seen


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic", "lanczos", "box", "hamming"])
def test_every_filter_is_pillows_of_that_name(interpolation):
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (90, 150, 3), dtype=np.uint8))
    pixels, _ = preprocess(noise, spec("squash", (24, 32), (24, 32), interpolation))
    assert (pixels == np.asarray(noise.resize((32, 24), Image.Resampling[interpolation.upper()]))).all()


@pytest.mark.parametrize(
    ("size", "to", "resized"),
    [
        ((64, 1), (256, 256), (64 * 256, 256)),
        ((200, 50), (32, 64), (128, 32)),  # as timm's ResizeKeepRatio: the side that has more to spare overlaps
        ((100, 100), (32, 64), (64, 64)),
        ((33, 20), (32, 64), (64, 39)),  # 20 * 64 / 33 = 38.8
    ],
)
def test_a_size_is_just_covered(size, to, resized):
    assert geometry(size, spec("shortest", to, to)).resized == resized


def test_sampled_bilinear_looks_at_four_pixels_alone():
    """As tf.image.resize without antialiasing; Pillow would average all sixty-four."""
    columns = np.arange(64, dtype=np.uint8)[None, :, None].repeat(64, 0).repeat(3, 2) * 3
    columns[:, 1::8] = 255  # a line that no sample touches
    pixels, _ = preprocess(Image.fromarray(columns), spec("squash", (8, 8), (8, 8), "bilinear_sampled"))
    assert pixels[0, :, 0].tolist() == [round(3 * (8 * i + 3.5)) for i in range(8)]
    grown, _ = preprocess(Image.fromarray(columns[:2, :2]), spec("squash", (4, 4), (4, 4), "bilinear_sampled"))
    assert grown[0, :, 0].tolist() == [0, 64, 191, 255]
