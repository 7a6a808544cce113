"""model/fit/choosing.py: which images choose, and whether mirroring harms."""

import pytest
import torch
from torch import Tensor, nn

from model.fit.choosing import MOST, divide, mirroring_harms
from model.fit.samples import Samples
from tests.support.samples import PREPROCESSING, SIZE


def test_a_fifth_of_each_class_chooses_and_at_least_one_of_two():
    classes = torch.tensor([0] * 50 + [1] * 10 + [2] * 2 + [3])
    learns, chooses = divide(classes, seed=0)
    assert torch.bincount(classes[chooses], minlength=4).tolist() == [10, 2, 1, 0]
    assert sorted([*learns.tolist(), *chooses.tolist()]) == list(range(63))
    assert torch.equal(divide(classes, seed=0)[1], chooses)
    assert not torch.equal(divide(classes, seed=1)[1], chooses)


def test_of_many_images_no_more_choose_than_are_needed():
    _, chooses = divide(torch.arange(20 * MOST) % 2, seed=0)
    assert len(chooses) == MOST


def test_with_one_image_of_each_class_none_chooses():
    assert [len(rows) for rows in divide(torch.arange(3), seed=0)] == [3, 0]


class Sides(nn.Module):
    """Tells which side is brighter, or, if `blind`, whether any is."""

    def __init__(self, *, blind: bool) -> None:
        super().__init__()
        self.blind, self.unused = blind, nn.Parameter(torch.zeros(1))

    def forward(self, images: Tensor) -> Tensor:
        left, right = (half.mean((1, 2, 3)) for half in images.split(images.shape[3] // 2, dim=3))
        return torch.stack([left * 0, (left - right).abs() - 0.01] if self.blind else [left, right], dim=1)


@pytest.mark.parametrize("blind", [False, True])
def test_mirroring_harms_a_network_that_tells_sides_apart(blind):
    pixels = torch.zeros(20, *SIZE, 3, dtype=torch.uint8)
    pixels[:10, :, :12] = pixels[10:, :, 12:] = 200
    samples = Samples(pixels=pixels, classes=torch.ones(20, dtype=torch.int64) if blind else torch.arange(20) // 10)
    assert mirroring_harms(Sides(blind=blind), samples, PREPROCESSING) is not blind
