from io import BytesIO

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from app.drawing.chart import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, draw_distance, nice_ticks
from app.maps.distance import AttentionDistance, MeanDistance

FAR = [[1.0, 1.0], [1.0, 1.0], [1.0, 4.0]]  # the largest is a tick, so it lies on the top of the plot


def draw(served=None, reference=FAR) -> np.ndarray:
    numbers = AttentionDistance(
        reference=MeanDistance(pictures=2, distance=reference),
        served=served and MeanDistance(pictures=1, distance=served),
        patch_size=8,
    )
    return np.asarray(Image.open(BytesIO(draw_distance("A title", numbers)))).astype(int)


def blue(picture: np.ndarray) -> np.ndarray:
    """Where filled dots are in the plot, (rows, columns)."""
    inside = (picture[..., 2] - picture[..., 0]) > 60
    inside[: TOP - 8] = False  # the legend
    return inside


@pytest.mark.parametrize(("layer", "distance"), [(0, 1.0), (1, 3.0), (2, 4.0)])
def test_a_served_head_stands_at_its_layer_and_distance(layer, distance):
    served = [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    ground = blue(draw(served))
    served[layer][1] = distance
    rows, columns = np.nonzero(blue(draw(served)) & ~ground)
    assert BOTTOM - rows.mean() == pytest.approx(distance / 4 * (BOTTOM - TOP), abs=1)
    width = (RIGHT - LEFT) / 3
    assert layer * width < columns.mean() - LEFT - width / 2 < (layer + 0.3) * width  # to the right of the reference


def test_reference_heads_are_drawn_alone_and_beside_the_served():
    alone, beside = draw(), draw([[2.0, 2.0]] * 3)
    assert alone.shape == (HEIGHT, WIDTH, 3)
    assert not blue(alone).any()
    assert blue(beside).any()
    assert (draw(reference=[[1.0, 2.0], [1.0, 1.0], [1.0, 4.0]]) != alone).any()
    # A network that reads itself alone is drawn on a scale of a patch.
    assert (draw(reference=[[0.0]]) != draw(reference=[[1.0]])).any()


@given(st.floats(1e-6, 1e6))
def test_ticks_cover_the_largest_value_and_are_few(largest):
    ticks = nice_ticks(largest)
    assert ticks[0] == 0
    assert 3 <= len(ticks) <= 9
    assert ticks[-2] < largest * (1 + 1e-6)
    assert ticks[-1] >= largest * (1 - 1e-6)
    assert np.diff(ticks) == pytest.approx(ticks[1])


@pytest.mark.parametrize(("largest", "step"), [(4.1, 1), (8, 1), (190, 50), (9, 2)])
def test_ticks_are_round_numbers(largest, step):
    assert nice_ticks(largest)[1] == step
