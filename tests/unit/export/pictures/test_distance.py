from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from export.pictures.distance import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, distance

FAR = [[1.0, 1.0], [1.0, 1.0], [1.0, 4.0]]  # the largest is a tick, so it lies on the top of the plot


def draw(heads: list[list[float]]) -> np.ndarray:
    """Dark to bright, from 0 to 255, int (HEIGHT, WIDTH)."""
    png = distance(np.array([heads]), patch_size=8).png
    return np.asarray(Image.open(BytesIO(png)).convert("L")).astype(int)


@pytest.mark.parametrize(("layer", "value"), [(0, 2.0), (1, 3.0), (2, 4.0)])
def test_a_head_stands_at_its_layer_and_distance(layer, value):
    moved = np.array(FAR)
    moved[layer][0] = value
    picture = draw(moved.tolist())
    assert picture.shape == (HEIGHT, WIDTH)
    assert (picture != draw(FAR)).any()
    around = picture[round(BOTTOM - value / 4 * (BOTTOM - TOP)), round(LEFT + (layer + 0.5) / 3 * (RIGHT - LEFT)) :]
    assert around[3:9].min() < 200  # the edge of a hollow dot, darker than the grid


def test_the_numbers_are_the_mean_over_every_image():
    of_images = np.arange(5, dtype=np.float32)[:, None, None] * np.array([[[1], [2], [3]]], np.float32)
    assert distance(of_images, patch_size=8).numbers == {
        "reference": {"pictures": 5, "distance": [[2], [4], [6]]},
        "unit": "patches",
        "patch_size": 8,
    }
