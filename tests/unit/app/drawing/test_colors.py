"""app/drawing/colors.py: which numbers are at the ends of the colours, and that these are matplotlib's."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from app.drawing.colors import Scale, limits, paint

MAPS = arrays(np.float32, (3, 5), elements=st.floats(allow_nan=False, allow_infinity=False, width=32))
SCALES = st.sampled_from(get_args(Scale))


@given(MAPS, MAPS, SCALES, st.booleans())
def test_every_number_has_a_place_and_keeps_its_order(values, others, scale, signed):
    places = limits(values, np.stack([values, others]), scale, signed=signed).unit(values)
    assert places.dtype == np.float32
    assert ((places >= 0) & (places <= 1)).all()
    in_order = places.ravel()[np.argsort(values, axis=None)]
    assert (np.diff(in_order) >= 0).all()


@given(MAPS, SCALES)
def test_zero_of_a_signed_map_is_the_middle_and_opposites_mirror(values, scale):
    ends = limits(values, values, scale, signed=True)
    assert ends.low == -ends.high < 0
    assert ends.unit(np.zeros(1, np.float32)) == 0.5
    assert ends.unit(values) + ends.unit(-values) == pytest.approx(1, abs=1e-6)


@given(MAPS, MAPS)
def test_a_shared_scale_is_that_of_all_that_share_it(one, other):
    both = np.stack([one, other])
    assert limits(one, both, "shared", signed=False) == (both.min(), both.max())


@given(MAPS)
def test_min_max_uses_all_colours_and_a_flat_map_one(values):
    places = limits(values, values, "min-max", signed=False).unit(values)
    assert places.min() == 0
    assert places.max() == (values.max() > values.min())


MOST = np.float32(0.7)
OUTLIER = np.append(np.linspace(0, 1, 400, dtype=np.float32), np.float32(1000))
ALONE = np.eye(1, 196, dtype=np.float32) * MOST


@pytest.mark.parametrize(
    ("values", "scale", "signed", "ends"),
    [
        (OUTLIER, "percentile", False, pytest.approx((0.01, 0.99), abs=3e-3)),
        (ALONE, "percentile", False, (0, MOST)),  # percentiles without a range give way to the whole range
        (-ALONE, "percentile", True, (-MOST, MOST)),
        (OUTLIER, "robust", False, pytest.approx((0, 1.31), abs=3e-3)),  # a third beyond the 98th percentile
        (-OUTLIER, "robust", True, pytest.approx((-1.31, 1.31), abs=3e-3)),
        (OUTLIER[:-1], "robust", False, (0, 1)),  # without an outlier, what min-max gives
        (ALONE, "robust", False, (0, MOST)),
        (OUTLIER, "absolute", False, (0, 1)),
        (OUTLIER, "absolute", True, (-1, 1)),
    ],
)
def test_an_outlier_moves_neither_percentiles_nor_robust_ends_nor_absolute_ones(values, scale, signed, ends):
    assert limits(values, values, scale, signed=signed) == ends


COLORS = {  # matplotlib's, at 0, 128 and 255
    "viridis": ((68, 1, 84), (32, 144, 140), (253, 231, 36)),
    "inferno": ((0, 0, 3), (188, 55, 84), (252, 254, 164)),
    "magma": ((0, 0, 3), (183, 55, 121), (251, 252, 191)),
    "cividis": ((0, 34, 77), (124, 123, 120), (253, 231, 55)),
    "turbo": ((48, 18, 59), (164, 252, 59), (122, 4, 2)),
    "gray": ((0, 0, 0), (128, 128, 128), (255, 255, 255)),
    "rdbu": ((5, 48, 97), (247, 246, 246), (103, 0, 31)),
}


@pytest.mark.parametrize("colormap", COLORS)
def test_the_ends_and_the_middle_and_values_beyond_the_ends(colormap):
    below, *colors, above = np.asarray(paint(np.array([[-3, 0, 128 / 255, 1, 4]]), colormap)).astype(int)[0]
    assert np.abs(np.array(colors) - COLORS[colormap]).max() <= 1
    assert ([*below], [*above]) == ([*colors[0]], [*colors[-1]])
