"""app/drawing/heatmap.py: the map lies where the network looked, in the colours that its numbers say."""

from io import BytesIO

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from app.drawing.colors import Limits, limits, paint
from app.drawing.heatmap import Style, colorize, draw
from app.images.preprocess import Box, PreprocessedImage
from tests.support.records import make_prepared

VIRIDIS_ENDS = (68, 1, 84), (253, 231, 36)
MIDDLE = Box(10, 0, 50, 40)


def prepared(encode, size=(60, 40), box=MIDDLE, scale=1, color="gray") -> PreprocessedImage:
    thumbnail = encode(Image.new("RGB", size, color), "JPEG", quality=100)
    return make_prepared(
        size=(size[0] * scale, size[1] * scale), box=Box(*(edge * scale for edge in box)), thumbnail=thumbnail
    )


def style(**changes) -> Style:
    return Style(**{"overlay": False, "fade": False, "alpha": 0.5, "interpolation": "nearest", **changes})


def pixels(values, image, signed=False, **changes) -> np.ndarray:
    values = np.array(values, np.float32)
    ends = limits(values, values, "min-max", signed=signed)
    return np.asarray(Image.open(BytesIO(draw(values, image, style(**changes), ends))))


@pytest.mark.parametrize("scale", [1, 7])
def test_each_patch_covers_its_part_of_the_crop_box(encode, scale):
    drawn = pixels([[0, 1], [0.5, 0]], prepared(encode, box=Box(10, 8, 50, 40), scale=scale))
    assert drawn.shape == (40, 60, 4)
    assert (drawn[8:, 10:50, 3] == 255).all()
    assert (drawn[..., 3] == 255).sum() == 32 * 40
    assert (drawn[8:24, 10:30, :3] == VIRIDIS_ENDS[0]).all()
    assert (drawn[8:24, 30:50, :3] == VIRIDIS_ENDS[1]).all()
    assert (drawn[24:, 30:50, :3] == VIRIDIS_ENDS[0]).all()
    assert (drawn[24:, 10:30, :3] == drawn[30, 15, :3]).all()


def test_overlay_blends_inside_and_darkens_outside(encode):
    drawn = pixels([[0, 1]], prepared(encode, color=(200, 200, 200)), overlay=True, alpha=0.25)
    assert drawn.shape == (40, 60, 3)
    assert np.abs(drawn[5, 5].astype(int) - 90).max() <= 1  # 0.45 * 200
    expected = 0.75 * 200 + 0.25 * np.array(VIRIDIS_ENDS[1])
    assert np.abs(drawn[5, 45] - expected).max() <= 1.5


@pytest.mark.parametrize(
    ("signed", "fade", "alpha", "left"),
    [(False, False, 0, 1), (True, False, 0, 0), (False, True, 0, 1), (False, True, 0.8, 0.36), (True, True, 0.8, 0.2)],
)
def test_an_image_is_pale_under_a_map_that_fades_and_else_grey_under_a_signed_one(encode, signed, fade, alpha, left):
    red = prepared(encode, color="red")
    drawn = pixels([[0.0, 0.0]], red, signed=signed, overlay=True, fade=fade, alpha=alpha).astype(int)
    assert np.ptp(drawn[20, 30]) == pytest.approx(255 * left, abs=5)


@pytest.mark.parametrize(("values", "signed"), [([[0, 1]], False), ([[0, -1]], True)])
def test_a_fading_map_is_clear_where_it_is_weak(encode, values, signed):
    orange = prepared(encode, color="orange")
    faded, image, even = (
        pixels(numbers, orange, signed=signed, overlay=True, **changes)
        for numbers, changes in ((values, {"fade": True}), ([[0, 0]], {"fade": True}), (values, {"alpha": 1.0}))
    )
    assert (faded[:, 10:30] == image[:, 10:30]).all()
    assert np.abs(faded[5, 45] - (image[5, 45] / 2 + even[5, 45] / 2)).max() <= 1.5


@pytest.mark.parametrize(("format", "width"), [("TIFF", 60), ("JPEG", 2049)])
def test_only_a_small_jpeg_is_opened(encode, format, width):
    """A process that has decoded hostile bytes has made it."""
    thumbnail = encode(Image.new("RGB", (width, 40)), format)
    with pytest.raises((SyntaxError, ValueError)):
        pixels([[0, 1]], make_prepared(size=(60, 40), box=MIDDLE, thumbnail=thumbnail))


def test_a_signed_map_diverges_from_white_unless_another_colormap_is_asked_for(encode):
    drawn = pixels([[-1, 0, 2]], prepared(encode), signed=True)[0, :, :3].astype(int)
    assert drawn[12, 2] > drawn[12, 0] + 50
    assert drawn[30].min() > 240
    assert tuple(drawn[48]) == (103, 0, 31)
    asked = pixels([[-1, 0, 2]], prepared(encode), signed=True, colormap="viridis")[0, 48, :3]
    assert (asked == VIRIDIS_ENDS[1]).all()


@given(st.integers(2, 9), st.integers(2, 9), st.integers(0, 99), st.integers(0, 99))
def test_bilinear_is_that_of_torch_with_patches_as_areas(rows, columns, more_rows, more_columns):
    """The number of a patch belongs to its centre (align_corners=False), not to a corner of the image."""
    values = np.random.default_rng(0).random((rows, columns), np.float32)
    size = rows + more_rows, columns + more_columns
    expected = torch.nn.functional.interpolate(
        torch.from_numpy(values)[None, None], size=size, mode="bilinear", align_corners=False
    )[0, 0].numpy()
    gray = style(interpolation="bilinear", colormap="gray")
    drawn = np.asarray(colorize(values, size[::-1], gray, Limits(0, 1)))[..., 0]
    # Half a step of rounding, in float32, and one because matplotlib's gray is 81 for 82 and the like.
    assert np.abs(drawn - 255 * expected).max() <= 1.5 + 1e-3


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic"])
def test_the_centre_of_a_patch_has_its_number(interpolation):
    values = np.random.default_rng(0).random((3, 5), np.float32)
    colors = np.asarray(colorize(values, (5 * 31, 3 * 31), style(interpolation=interpolation), Limits(0, 1)))
    assert (colors[15::31, 15::31] == np.asarray(paint(values, "viridis"))).all()
    assert (len(np.unique(colors.reshape(-1, 3), axis=0)) > values.size) == (interpolation != "nearest")


def test_nearest_takes_every_patch_into_account_where_pixels_are_few():
    values = np.array([[0, 1, 0, 1]], np.float32)
    drawn = np.asarray(colorize(values, (2, 1), style(colormap="gray"), Limits(0, 1)))
    assert drawn[0, :, 0].tolist() == [128, 128]


def test_a_crop_thinner_than_a_pixel_is_still_drawn(encode):
    sliver = prepared(encode, size=(40, 1), box=Box(20, 0, 20.2, 1))
    assert (pixels([[1, 0]], sliver)[..., 3] > 0).sum() == 1
