"""export/distances.py: how far attention reaches, by the formula of the field."""

import numpy as np
import pytest
import torch

from app.distance import AttentionDistance
from export.distances import PICTURES, attention_distance, distances, reference_distance
from export.image_spec import image_spec
from tests.toy import toy_checkpoint

GRID = (3, 5)


def oracle(matrix: np.ndarray, grid: tuple[int, int], prefix: int) -> float:
    """One head's, in so many words (Keras' probing-vits, `compute_mean_attention_dist`)."""
    rows, columns = grid
    of_patches = []
    for i in range(rows * columns):
        of_patch = 0.0
        for j in range(rows * columns):
            apart = np.hypot(i // columns - j // columns, i % columns - j % columns)
            of_patch += matrix[prefix + i, prefix + j] * apart
        of_patches.append(of_patch)
    return float(np.mean(of_patches))


@pytest.mark.parametrize("prefix", [0, 1, 3])
def test_attention_to_oneself_has_no_distance(prefix):
    assert attention_distance(torch.eye(15 + prefix), GRID, prefix=prefix) == 0


def test_uniform_attention_has_the_mean_distance_of_two_patches():
    apart = [np.hypot(a // 2 - b // 2, a % 2 - b % 2) for a in range(4) for b in range(4)]
    assert attention_distance(torch.full((4, 4), 1 / 4), (2, 2), prefix=0) == pytest.approx(np.mean(apart))


def test_what_goes_to_the_prefix_goes_no_distance():
    """Half of every row is the class token's: half the distance is left."""
    matrix = torch.full((5, 5), 1 / 8)
    matrix[:, 0] = 1 / 2
    without = attention_distance(torch.full((4, 4), 1 / 4), (2, 2), prefix=0)
    assert attention_distance(matrix, (2, 2), prefix=1) == pytest.approx(without / 2)


def test_reading_the_next_row_is_one_patch_on_an_oblong_grid():
    matrix = torch.roll(torch.eye(15), 5, dims=1)
    assert attention_distance(matrix, GRID, prefix=0) == pytest.approx((1 + 1 + 2) / 3)  # the last row reads the first


@pytest.mark.parametrize("changes", [{}, {"registers": 2}, {"class_token": False, "pool": "mean"}])
def test_the_toys_distances_are_the_formulas(changes):
    toy = toy_checkpoint(**changes)
    prefix = len(toy.config.prefix)
    pixels = np.random.default_rng(0).integers(0, 256, (2, 24, 40, 3), dtype=np.uint8)
    found = distances(toy.model, toy.preprocessing, pixels)
    mean, std = np.array(toy.preprocessing.mean), np.array(toy.preprocessing.std)
    images = torch.from_numpy(((pixels / 255 - mean) / std).transpose(0, 3, 1, 2)).float()
    matrices = toy.model.attentions(images).detach().numpy()
    assert found.shape == (2, 2, 2)
    for place in np.ndindex(found.shape):
        assert found[place] == pytest.approx(oracle(matrices[place], GRID, prefix), rel=1e-4)
    assert found.min() > 0.1


def test_the_portrait_is_the_mean_of_what_was_measured():
    toy = toy_checkpoint()
    seen = []

    def measure(pixels):
        first = len(seen)
        seen.extend(pixels)
        return np.arange(first, first + len(pixels), dtype=np.float32)[:, None, None] * np.array([[[1], [2], [3]]])

    found = reference_distance(measure, image_spec(toy.preprocessing), patch_size=8)
    numbers = AttentionDistance.model_validate(found.numbers)
    middle = (PICTURES - 1) / 2
    assert numbers.reference.pictures == len(seen) == PICTURES
    assert numbers.reference.distance == [[middle], [2 * middle], [3 * middle]]
    assert (numbers.served, numbers.unit, numbers.patch_size) == (None, "patches", 8)
    assert {picture.shape for picture in seen} == {(24, 40, 3)}
