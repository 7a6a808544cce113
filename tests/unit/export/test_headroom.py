import pytest
import torch

from export.headroom import widen
from tests.support.toy import toy_checkpoint

READ = (0.25, 0.6, 1.0, 1.0, 3.0)  # the largest number that the second layer of each MLP reads


@pytest.fixture
def measured():
    """A model whose MLPs differ in their ranges alone."""
    model = toy_checkpoint(depth=len(READ)).model
    for block, largest in zip(model.blocks, READ, strict=True):
        layer = block.mlp.fc2
        layer.weight.data = torch.ones_like(layer.weight)
        layer.register_buffer("moments", torch.eye(layer.in_features))
        layer.register_buffer("range", torch.tensor([-largest / 10, largest]))
    return model


def ranges(model):
    return torch.stack([block.mlp.fc2.range for block in model.blocks])


def test_layers_that_rounding_disturbs_less_than_the_median_get_room_up_to_twice_their_range(measured):
    widen(measured)
    largest = torch.tensor([0.5, 1.0, 1.0, 1.0, 3.0])
    torch.testing.assert_close(ranges(measured), torch.stack([-largest / 10, largest], 1))


def test_what_a_layer_adds_counts_and_not_its_range_alone(measured):
    measured.blocks[4].mlp.fc2.moments *= 6**2
    widen(measured)
    assert ranges(measured)[:, 1].tolist() == pytest.approx([0.5, 0.6, 1.0, 1.0, 3.6])


def test_a_layer_of_zeros_keeps_its_range(measured):
    measured.blocks[3].mlp.fc2.weight.data.zero_()
    widen(measured)
    assert ranges(measured)[3].tolist() == pytest.approx([-0.1, 1.0])
    assert ranges(measured).isfinite().all()
