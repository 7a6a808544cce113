"""app/drawing/colormaps.py: matplotlib's colours."""

import numpy as np
import pytest

from app.drawing.colormaps import paint

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
