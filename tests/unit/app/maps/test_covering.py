import numpy as np
import pytest

from app.maps.covering import cover, filled

PATCH = 2


def test_covering_a_patch_changes_its_pixels_alone():
    rng = np.random.default_rng(0)
    pixels = rng.integers(1, 255, (3 * PATCH, 5 * PATCH, 3), dtype=np.uint8)
    covered = np.zeros((2, 15), bool)
    covered[1, [7, 14]] = True  # row 1, column 2; row 2, column 4
    untouched, touched = cover(pixels, np.zeros_like(pixels), covered, patch=PATCH)
    expected = pixels.copy()
    expected[2:4, 4:6] = expected[4:6, 8:10] = 0
    assert (untouched == pixels).all()
    assert (touched == expected).all()
    assert touched.dtype == np.uint8


def test_fills():
    pixels = np.zeros((4, 8, 3), np.uint8)
    pixels[:, 2:, 0] = 255
    assert (filled(pixels, "mean", patch=PATCH) == [191, 0, 0]).all()
    assert (filled(pixels, "black", patch=PATCH) == 0).all()
    assert (filled(pixels, "gray", patch=PATCH) == 128).all()
    blurred = filled(pixels, "blur", patch=PATCH)
    assert blurred.shape == pixels.shape
    assert 0 < blurred[0, 1, 0] < blurred[0, 2, 0] < 255
    assert (blurred[..., 1:] == 0).all()


def test_a_blur_is_as_wide_as_a_patch():
    edge = np.zeros((64, 64, 3), np.uint8)
    edge[:, 32:] = 255
    for patch in (4, 8):
        row = filled(edge, "blur", patch=patch)[32, :, 0] / 255
        assert row[32 + patch] == pytest.approx(0.84, abs=0.03)  # one standard deviation right of the edge
