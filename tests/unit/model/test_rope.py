"""model/rope.py: the angles of each library, written again for one patch, and what turning must not change."""

import math

import pytest
import torch

from model.config import RopeConfig
from model.positions import resize
from model.rope import Rope
from model.variants import variant
from tests.support.toy import toy_model

SIZE = (32, 48)  # two rows and three columns of patches
WIDTH = 16  # of a head: eight pairs
KINDS = {
    "EVA-02": RopeConfig(reference=(4, 4)),
    "Perception Encoder": RopeConfig(axes="xy", offset=1.0, reference=(3, 5)),
    "DINOv3": RopeConfig(kind="centered", pairs="halves", temperature=100.0),
    "RoPE-mixed": RopeConfig(kind="learned", axes="xy", temperature=10.0),
}


def rope(config: RopeConfig, **changes) -> Rope:
    torch.manual_seed(0)
    return Rope(variant("mu/16", image_size=SIZE, rope=config, **changes))


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def kind(request) -> RopeConfig:
    return request.param


def heads(count: int = 7) -> torch.Tensor:
    return torch.randn(3, 2, count, WIDTH, generator=torch.Generator().manual_seed(1))


def turned_by(of: Rope, row: int, column: int) -> torch.Tensor:
    """Cosine and sine of one patch by its tables, (2, ..., 8)."""
    return torch.stack(of.tables())[..., 1 + 3 * row + column, :]


def cosine_and_sine(angles: list[float]) -> torch.Tensor:
    return torch.tensor([[f(angle) for angle in angles] for f in (math.cos, math.sin)])


@torch.no_grad()
def test_nothing_but_angles_changes(kind):
    x = heads()
    turned = rope(kind)(x)
    torch.testing.assert_close(turned.square().sum(-1), x.square().sum(-1))
    torch.testing.assert_close(turned[:, :, 0], x[:, :, 0], rtol=0, atol=0)  # the class token
    assert (turned[:, :, 1:] - x[:, :, 1:]).abs().amax((0, 1, 3)).count_nonzero() >= 5


@torch.no_grad()
def test_attention_depends_on_the_offset_between_patches_alone(kind):
    """The same query and key at two pairs of patches that are one column apart."""
    query, key = heads(1).expand(-1, -1, 7, -1), heads(2)[:, :, 1:].expand(-1, -1, 7, -1)
    turn = rope(kind)
    scores = turn(query) @ turn(key).transpose(-2, -1)  # (3, 2, T, T)
    for i, j in ((1, 2), (2, 3), (4, 5)):  # of tokens; token 3 ends the first row
        torch.testing.assert_close(scores[..., i, j], scores[..., 5, 6], rtol=1e-4, atol=1e-4)
        assert (scores[..., i, j] - scores[..., j, i]).abs().max() > 1e-3


@torch.no_grad()
def test_several_tokens_before_the_patches_are_not_turned():
    x = heads(9)
    turned = rope(RopeConfig(offset=1.0), registers=2)(x)
    torch.testing.assert_close(turned[:, :, :3], x[:, :, :3], rtol=0, atol=0)
    assert (turned[:, :, 3] - x[:, :, 3]).abs().max() > 0.1


def test_eva_scales_places_to_the_grid_of_pretraining():
    row, column = 1, 2
    expected = [at * 10_000 ** (-i / 4) for at in (row / 2 * 4, column / 3 * 4) for i in range(4)]
    torch.testing.assert_close(turned_by(rope(KINDS["EVA-02"]), row, column), cosine_and_sine(expected))


def test_perception_encoder_counts_from_one_and_starts_with_columns():
    row, column = 1, 2
    expected = [at * 10_000 ** (-i / 4) for at in ((column + 1) / 3 * 5, (row + 1) / 2 * 3) for i in range(4)]
    torch.testing.assert_close(turned_by(rope(KINDS["Perception Encoder"]), row, column), cosine_and_sine(expected))


def test_dinov3_turns_by_places_from_minus_one_to_one():
    row, column = 1, 2
    places = (2 * (row + 0.5) / 2 - 1, 2 * (column + 0.5) / 3 - 1)
    expected = [2 * math.pi * at / 100 ** (i / 4) for at in places for i in range(4)]
    torch.testing.assert_close(turned_by(rope(KINDS["DINOv3"]), row, column), cosine_and_sine(expected))


@torch.no_grad()
def test_learned_frequencies_are_of_each_head_and_axis():
    turn, row, column = rope(KINDS["RoPE-mixed"]), 1, 2
    for head in range(2):
        x, y = turn.freqs[:, head].tolist()
        expected = [column * along_x + row * along_y for along_x, along_y in zip(x, y, strict=True)]
        torch.testing.assert_close(turned_by(turn, row, column)[:, head], cosine_and_sine(expected))


@torch.no_grad()
def test_neighbours_and_halves_are_the_same_pairs_in_another_order():
    x = heads()
    order = torch.cat([torch.arange(0, WIDTH, 2), torch.arange(1, WIDTH, 2)])
    neighbours, halves = (rope(RopeConfig(pairs=pairs)) for pairs in ("neighbours", "halves"))
    torch.testing.assert_close(halves(x[..., order]), neighbours(x)[..., order])


@torch.no_grad()
def test_another_image_size_is_computed_and_not_interpolated(kind):
    model = toy_model(variant("mu/16", image_size=SIZE, positions="none", rope=kind))
    resized = resize(model, (48, 64))
    fresh = Rope(resized.config)
    fresh.load_state_dict(model.blocks[1].attn.rope.state_dict())
    for ours, expected in zip(resized.blocks[1].attn.rope.tables(), fresh.tables(), strict=True):
        torch.testing.assert_close(ours, expected, rtol=0, atol=0)


def test_training_starts_with_two_directions_at_right_angles():
    x, y = rope(RopeConfig(kind="learned", temperature=10.0)).freqs.detach()  # each (H, 8)
    expected = 10.0 ** -(torch.arange(4) / 4)
    for head in range(2):
        lengths = (x[head] ** 2 + y[head] ** 2).sqrt()
        torch.testing.assert_close(lengths, torch.cat([expected, expected]))
        across = x[head, :4] * x[head, 4:] + y[head, :4] * y[head, 4:]
        torch.testing.assert_close(across, torch.zeros(4), rtol=0, atol=1e-6)


def test_fixed_tables_are_in_no_checkpoint(kind):
    assert set(rope(kind).state_dict()) == ({"freqs"} if kind.kind == "learned" else set())
