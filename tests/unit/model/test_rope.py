"""model/rope.py: what tests/golden cannot show, whose Perception Encoder is square, and the start of training."""

import math

import torch

from model.config import RopeConfig
from model.rope import Rope
from model.variants import variant


def rope(config: RopeConfig) -> Rope:
    torch.manual_seed(0)
    return Rope(variant("mu/16", image_size=(32, 48), rope=config))  # two rows and three columns of patches


def test_perception_encoder_counts_from_one_and_starts_with_columns():
    turn, row, column = rope(RopeConfig(axes="xy", offset=1.0, reference=(3, 5))), 1, 2
    angles = [at * 10_000 ** (-i / 4) for at in ((column + 1) / 3 * 5, (row + 1) / 2 * 3) for i in range(4)]
    expected = torch.tensor([[f(angle) for angle in angles] for f in (math.cos, math.sin)])
    torch.testing.assert_close(torch.stack(turn.tables())[:, 1 + 3 * row + column], expected)


def test_training_starts_with_two_directions_at_right_angles():
    x, y = rope(RopeConfig(kind="learned", temperature=10.0)).freqs.detach()  # each (H, 8)
    expected = 10.0 ** -(torch.arange(4) / 4)
    for head in range(2):
        lengths = (x[head] ** 2 + y[head] ** 2).sqrt()
        torch.testing.assert_close(lengths, torch.cat([expected, expected]))
        across = x[head, :4] * x[head, 4:] + y[head, :4] * y[head, 4:]
        torch.testing.assert_close(across, torch.zeros(4), rtol=0, atol=1e-6)
