"""model/fit/dropout.py: which numbers are dropped, when, and that the seed and the step decide."""

import pytest
import torch

from model.fit.dropout import WithDropout, dropout
from model.fit.measure import Measured
from model.variants import variant
from tests.support.toy import toy_model

SIZE, SHARE = (16, 24), 0.25


@pytest.fixture
def network():
    return toy_model(variant("mu/8", image_size=SIZE, num_classes=3))


def test_a_share_is_zero_and_the_rest_is_larger(network):
    torch.manual_seed(0)
    images, hidden = torch.randn(8, 3, *SIZE), []
    plain = network.embed(images)
    with dropout(network, SHARE):
        network.blocks[1].mlp.fc2.register_forward_pre_hook(lambda _, inputs: hidden.append(inputs[0]))
        dropped = network.embed(images)
        network(images)
    for numbers in (dropped, hidden[0]):
        assert (numbers == 0).float().mean().item() == pytest.approx(SHARE, abs=0.02)
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], plain[kept] / (1 - SHARE))


def test_branches_are_dropped_and_qkv_is_not(network):
    tokens = torch.randn(8, 7, 32)
    block = network.blocks[0]
    with dropout(network, SHARE):
        for added in block.branches(tokens):
            assert (added == 0).float().mean().item() == pytest.approx(SHARE, abs=0.05)
        assert (block.attn.qkv(tokens) != 0).all()


def test_afterwards_the_network_is_as_before(network):
    images = torch.randn(2, 3, *SIZE)
    plain = network(images)
    with dropout(network, SHARE):
        assert not torch.equal(network(images), plain)
    assert torch.equal(network(images), plain)


class OfImages:
    """An objective whose loss is a sum of the logits of the same images."""

    def __init__(self, network):
        self.network, self.images = network, torch.randn(2, 3, *SIZE)

    def loss(self, step):
        return self.network(self.images).sum()

    def measure(self, network):
        return Measured(loss=network(self.images).sum().item(), accuracy=0.0)


def test_seed_and_step_decide_and_nothing_else_does(network):
    objective = OfImages(network)
    dropped = WithDropout(objective, network, share=SHARE, seed=0)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first = dropped.loss(7)
    assert torch.equal(torch.rand(3), expected)  # the random numbers of others are left alone
    assert torch.equal(dropped.loss(7), first)
    assert not torch.equal(dropped.loss(8), first)
    assert not torch.equal(WithDropout(objective, network, share=SHARE, seed=1).loss(7), first)
    assert dropped.measure(network) == objective.measure(network)
