"""export/pictures/distances.py, and attention distance where it is known: a hand-made attention."""

import numpy as np
import pytest
import torch

from app.maps.distance import AttentionDistance
from export.pictures.distances import reference_distance
from export.reference import reference
from tests.support.toy import toy_checkpoint


def distance_of(matrix: torch.Tensor, **changes) -> np.ndarray:
    """(L, H) of a 3 x 5 grid when every head's attention is `matrix`."""
    toy = toy_checkpoint(**changes)
    for block in toy.model.blocks:
        block.attention = lambda tokens: matrix.expand(1, 2, -1, -1)
    pixels = np.zeros((1, 24, 40, 3), np.uint8)
    return reference(toy, pixels, np.zeros((1, 1), np.int64))["distance"][0]


def mean_apart() -> float:
    return float(np.mean([np.hypot(i // 5 - j // 5, i % 5 - j % 5) for i in range(15) for j in range(15)]))


@pytest.mark.parametrize("registers", [0, 2])
def test_attention_to_oneself_has_no_distance(registers):
    assert (distance_of(torch.eye(16 + registers), registers=registers) == 0).all()


def test_uniform_attention_has_the_mean_distance_of_two_patches():
    """What goes to the class token, one part in sixteen, goes no distance."""
    assert distance_of(torch.full((16, 16), 1 / 16)) == pytest.approx(np.full((2, 2), 15 / 16 * mean_apart()))


def test_without_a_prefix_nothing_is_left_out():
    matrix = torch.full((15, 15), 1 / 15)
    assert distance_of(matrix, class_token=False, pool="mean") == pytest.approx(np.full((2, 2), mean_apart()))


def test_reading_the_row_below_is_one_patch():
    """The last row reads the first, two away."""
    matrix = torch.block_diag(torch.eye(1), torch.roll(torch.eye(15), 5, dims=1))
    assert distance_of(matrix) == pytest.approx(np.full((2, 2), (1 + 1 + 2) / 3))


def test_the_picture_is_the_mean_over_every_image():
    of_images = np.arange(5)[:, None, None] * np.array([[[1.0], [2.0], [3.0]]])
    found = reference_distance(of_images, patch_size=8)
    numbers = AttentionDistance.model_validate(found.numbers)
    assert numbers.reference.pictures == 5
    assert numbers.reference.distance == [[2], [4], [6]]
    assert (numbers.served, numbers.unit, numbers.patch_size) == (None, "patches", 8)
