"""app/heatmap.py: the map lies where the network looked, in the colours that its numbers say."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from app.heatmap import Style, draw
from app.preprocess import Box
from app.store import Record
from tests.records import make_record

VIRIDIS_ENDS = (68, 1, 84), (253, 231, 36)


MIDDLE = Box(10, 0, 50, 40)


def record(encode, size=(60, 40), box=MIDDLE, scale=1, color="gray") -> Record:
    thumbnail = encode(Image.new("RGB", size, color), "JPEG", quality=100)
    return make_record(
        image_size=(size[0] * scale, size[1] * scale),
        box=Box(*(edge * scale for edge in box)),
        thumbnail=thumbnail,
    )


def pixels(values, record, **style) -> np.ndarray:
    chosen = {"overlay": False, "alpha": 0.5, "colormap": "viridis", "interpolation": "nearest", **style}
    return np.asarray(Image.open(BytesIO(draw(np.array(values, np.float32), record, Style(**chosen)))))


@pytest.mark.parametrize("scale", [1, 7])
def test_each_patch_covers_its_part_of_the_crop_box(encode, scale):
    found = pixels([[0, 1], [0.5, 0]], record(encode, scale=scale))
    assert found.shape == (40, 60, 4)
    assert (found[:, :10, 3] == 0).all()
    assert (found[:, 50:, 3] == 0).all()
    assert (found[:20, 10:30, :3] == VIRIDIS_ENDS[0]).all()
    assert (found[:20, 30:50, :3] == VIRIDIS_ENDS[1]).all()
    assert (found[20:, 30:50, :3] == VIRIDIS_ENDS[0]).all()
    assert (found[20:, 10:30, :3] == found[30, 15, :3]).all()


def test_rows_and_columns_are_not_mixed_up(encode):
    values = np.zeros((3, 5))
    values[2, 1] = 1
    found = pixels(values, record(encode, size=(50, 30), box=Box(0, 0, 50, 30)))
    lit = (found[..., :3] == VIRIDIS_ENDS[1]).all(axis=-1)
    assert lit[20:, 10:20].all()
    assert lit.sum() == 100


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
def test_smoothing_keeps_the_place_and_the_ends(encode, interpolation):
    values = np.zeros((4, 4))
    values[1, 2] = 1
    found = pixels(values, record(encode, size=(40, 40), box=Box(0, 0, 40, 40)), interpolation=interpolation)
    brightness = found[..., 1].astype(int)
    row, column = np.unravel_index(brightness.argmax(), brightness.shape)
    assert 10 <= row < 20
    assert 20 <= column < 30
    assert len(np.unique(brightness)) > 10


def test_overlay_blends_inside_and_darkens_outside(encode):
    found = pixels([[0, 1]], record(encode, color=(200, 200, 200)), overlay=True, alpha=0.25)
    assert found.shape == (40, 60, 3)
    assert np.abs(found[5, 5].astype(int) - 90).max() <= 1  # 0.45 * 200
    expected = 0.75 * 200 + 0.25 * np.array(VIRIDIS_ENDS[1])
    assert np.abs(found[5, 45] - expected).max() <= 1.5


def test_a_flat_map_is_drawn_flat(encode):
    assert (pixels([[0.3, 0.3]], record(encode))[:, 10:50, :3] == VIRIDIS_ENDS[0]).all()


@pytest.mark.parametrize("colormap", ["viridis", "inferno", "magma", "cividis", "turbo", "gray"])
def test_each_colormap_has_its_own_ends(encode, colormap):
    ends = {  # matplotlib's, at 0 and 255
        "viridis": VIRIDIS_ENDS,
        "inferno": ((0, 0, 3), (252, 254, 164)),
        "magma": ((0, 0, 3), (251, 252, 191)),
        "cividis": ((0, 34, 77), (253, 231, 55)),
        "turbo": ((48, 18, 59), (122, 4, 2)),
        "gray": ((0, 0, 0), (255, 255, 255)),
    }
    found = pixels([[0, 1]], record(encode), colormap=colormap)[0].astype(int)
    assert np.abs(found[12, :3] - ends[colormap][0]).max() <= 1
    assert np.abs(found[48, :3] - ends[colormap][1]).max() <= 1


def test_a_crop_thinner_than_a_pixel_is_still_drawn(encode):
    sliver = record(encode, size=(40, 1), box=Box(20, 0, 20.2, 1))
    assert (pixels([[1, 0]], sliver)[..., 3] > 0).sum() == 1
