"""model/positions.py: every library's interpolation, and networks of every kind at another size."""

from typing import get_args

import pytest
import torch

from model.config import PositionResize
from model.positions import INTERPOLATION, geometric_weights, resize, resize_positions, resize_relative_bias
from model.variants import variant
from tests.support.switches import SWITCHES
from tests.support.toy import toy_model

METHODS = list(INTERPOLATION)
GEOMETRIC = {"positions": "none", "relative_bias": True, "position_resize": "geometric"}


def network(**changes):
    return toy_model(variant("mu/16", image_size=(32, 48), num_classes=5, **changes))


def linear(distance):
    return (1 - distance.abs()).clamp(min=0)


def cubic(distance, a):
    """Keys 1981: a is -0.75 in torch, -0.5 in torch with antialias."""
    d = distance.abs()
    near = (a + 2) * d**3 - (a + 3) * d**2 + 1
    far = a * (d**3 - 5 * d**2 + 8 * d - 4)
    return torch.where(d <= 1, near, torch.where(d < 2, far, 0.0))


def half_pixel(i, n, m):
    return (i + 0.5) * m / n - 0.5


def corners(i, n, m):
    return i * (m - 1) / (n - 1)


@pytest.mark.parametrize(
    ("method", "sampled_at", "kernel"),
    [
        ("bicubic_antialias", half_pixel, lambda d: cubic(d, -0.5)),
        ("bicubic", half_pixel, lambda d: cubic(d, -0.75)),
        ("bicubic_corners", corners, lambda d: cubic(d, -0.75)),
        ("bicubic_offset", lambda i, n, m: half_pixel(i, n + 0.1, m), lambda d: cubic(d, -0.75)),
        ("bilinear", half_pixel, linear),
        ("bilinear_corners", corners, linear),
    ],
)
def test_a_method_is_its_kernel_at_its_places(method, sampled_at, kernel):
    """Away from the border, where torch and the libraries clamp or renormalise."""
    old, new = (8, 10), (12, 17)
    table = torch.randn(8, 10, 3)
    expected, inside = table, []
    for axis in (0, 1):
        places = sampled_at(torch.arange(float(new[axis])), new[axis], old[axis])
        weights = kernel(places[:, None] - torch.arange(float(old[axis])))  # (new, old)
        expected = torch.tensordot(weights, expected, dims=([1], [axis])).movedim(0, axis)
        inside.append((places > 1) & (places < old[axis] - 2))
    resized = resize_positions(table.reshape(1, 80, 3), old, new, method).reshape(*new, 3)
    both = inside[0][:, None] & inside[1]
    assert both.sum() > 50
    torch.testing.assert_close(resized[both], expected[both], rtol=1e-4, atol=1e-5)


def test_relative_tables_resize_their_offsets_and_keep_the_class_tokens_rows():
    table = torch.randn(3 * 5 + 3, 2)
    resized = resize_relative_bias(table, (2, 3), (4, 3), "bilinear")
    assert resized.shape == (7 * 5 + 3, 2)
    torch.testing.assert_close(resized[-3:], table[-3:])
    torch.testing.assert_close(resized[:-3].reshape(7, 5, 2)[3], table[:-3].reshape(3, 5, 2)[1])  # no offset down


@pytest.mark.parametrize(("old", "new"), [(27, 47), (27, 41), (11, 23)])
def test_geometric_weights_keep_near_offsets_and_both_ends(old, new):
    weights = geometric_weights(old, new)
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(new))
    for near in (-1, 0, 1):
        assert weights[new // 2 + near, old // 2 + near] > 0.9999
    assert weights[0, 0] > 0.99
    assert weights[-1, -1] > 0.99
    torch.testing.assert_close(weights.flip(0, 1), weights, atol=1e-4, rtol=0)


def test_geometric_weights_are_linear_between_old_offsets():
    """The factor is looked for below 1.5, so that 5 old offsets end at 2.5; what is beyond is their last."""
    weights = geometric_weights(5, 13)[6:, 2:]
    expected = [[1, 0, 0], [0, 1, 0], [0, 1 / 3, 2 / 3], [0, 0, 1], [0, 0, 1], [0, 0, 1], [0, 0, 1]]
    torch.testing.assert_close(weights, torch.tensor(expected), atol=1e-4, rtol=0)


def test_another_method_or_table_is_refused():
    others = set(get_args(PositionResize)) - set(METHODS)
    assert others == {"geometric", "none"}
    for method in others:
        with pytest.raises(ValueError, match=rf"positions of this kind \({method}\) cannot be interpolated"):
            resize_positions(torch.zeros(1, 4, 8), (2, 2), (3, 3), method)
    with pytest.raises(ValueError, match="of 7 positions does not fit 2 by 3 patches"):
        resize_positions(torch.zeros(1, 7, 4), (2, 3), (3, 3), "bilinear")
    with pytest.raises(ValueError, match="cannot be interpolated"):
        resize_relative_bias(torch.zeros(9, 2), (2, 2), (3, 3), "none")


@torch.no_grad()
@pytest.mark.parametrize("kind", [{}, GEOMETRIC, *SWITCHES.values()], ids=["plain", "geometric", *SWITCHES])
def test_networks_of_every_kind_resize(kind):
    model = network(**kind)
    resized = resize(model, (64, 32))
    assert resized.config.grid == (4, 2)
    assert not resized.training
    assert resized(torch.randn(2, 3, 64, 32)).isfinite().all()
    before, after = model.state_dict(), resized.state_dict()
    assert before.keys() == after.keys()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert all("pos_embed" in name or "relative_position_bias_table" in name for name in changed)
