"""model/fit/classification.py: which numbers are dropped, when, and that the seed decides."""

import pytest
import torch

from model.fit.augment import Augmentation
from model.fit.batches import Batches
from model.fit.classification import Classification, dropout
from model.variants import variant
from tests.support.samples import PREPROCESSING, SIZE, squares
from tests.support.toy import toy_model

SHARE = 0.25


@pytest.fixture
def network():
    return toy_model(variant("mu/8", image_size=SIZE, num_classes=3))


def test_a_share_is_zero_and_the_rest_is_larger(network):
    torch.manual_seed(0)
    images, hidden = torch.randn(8, 3, *SIZE), []
    plain = network.embed(images)
    with dropout(network, SHARE, seed=0):
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
    with dropout(network, SHARE, seed=0):
        for added in block.branches(tokens):
            assert (added == 0).float().mean().item() == pytest.approx(SHARE, abs=0.05)
        assert (block.attn.qkv(tokens) != 0).all()


def test_the_seed_decides_and_nothing_stays_in_the_network(network):
    images = torch.randn(2, 3, *SIZE)
    plain = network(images)

    def dropped(seed):
        with dropout(network, SHARE, seed=seed):
            return network(images)

    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first = dropped(7)
    assert torch.equal(torch.rand(3), expected)  # the random numbers of others are left alone
    assert torch.equal(dropped(7), first)
    assert not torch.equal(dropped(8), first)
    assert torch.equal(network(images), plain)


def test_each_step_drops_other_numbers(network):
    unchanged = Augmentation(least_area=1, most_aspect=1, flip=False)
    batches = Batches(samples=squares(1), size=SIZE, batch=1, seed=0, augmentation=unchanged)
    objective = Classification(network, PREPROCESSING, batches, None, dropout_share=SHARE)
    first, other, again = (objective.loss(step) for step in (0, 1, 0))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
