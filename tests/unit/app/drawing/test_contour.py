import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from app.drawing.contour import DARK, LIGHT, outline, smallest_holding

SHARES = st.floats(0.01, 0.99)


@given(arrays(np.float32, (3, 5), elements=st.floats(0, 1, width=32, allow_subnormal=False)), SHARES)
def test_the_mask_holds_the_share_and_needs_each_of_its_patches(values, share):
    mask = smallest_holding(values, share)
    total = values.sum(dtype=np.float64)
    assert mask.any() == (total > 0)
    if mask.any():
        held = values[mask].sum(dtype=np.float64)
        assert held >= share * total * (1 - 1e-9)
        assert held - values[mask].min() <= share * total * (1 + 1e-9)
        assert values[mask].min() >= values[~mask].max(initial=0)


@pytest.mark.parametrize(
    ("values", "share", "held"),
    [
        ([-9, 3, 1], 0.7, [False, True, False]),  # only what is positive counts
        ([-1, -2, 0], 0.5, [False, False, False]),
        ([1, 1, 2], 0.5, [False, False, True]),  # exactly the share is enough
    ],
)
def test_which_patches_hold_a_share(values, share, held):
    assert smallest_holding(np.array([values], np.float32), share).tolist() == [held]


def lines(mask, place, size=(12, 10), mode="RGB") -> tuple[np.ndarray, np.ndarray]:
    """Where the light and the dark line were drawn on gray."""
    canvas = Image.new(mode, size, (120, 120, 120))
    outline(canvas, np.array(mask, bool), place)
    pixels = np.asarray(canvas)[..., :3]
    return (pixels == LIGHT[:3]).all(-1), (pixels == DARK[:3]).all(-1)


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_the_line_runs_along_the_patches_light_inside_and_dark_outside(mode):
    light, dark = lines([[0, 0], [0, 1]], (2, 0, 10, 8), mode=mode)
    inside = np.zeros((10, 12), bool)
    inside[4:8, 6:10] = True
    around, middle = np.zeros_like(inside), np.zeros_like(inside)
    around[3:9, 5:11], middle[5:7, 7:9] = True, True
    assert (light == inside & ~middle).all()
    assert (dark == around & ~inside).all()
