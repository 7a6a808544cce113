"""export/smoothing.py: nothing changes in float32, and outliers are gone."""

import copy

import pytest
import torch

from export.image_spec import image_spec
from export.images import reference_pixels
from export.smoothing import smoothed
from tests.support.switches import SWITCHES
from tests.support.toy import toy_checkpoint

CHANNEL, FACTOR = 5, 50.0


@pytest.fixture(scope="module")
def pixels():
    return reference_pixels(image_spec(toy_checkpoint().preprocessing), 24)


def unevenness(model, images) -> list[float]:
    """Largest channel over the median channel of what each block's first norm gives."""
    inputs = zip(model.blocks, model.layers(images), strict=False)
    ranges = (block.read(tokens).abs().amax((0, 1)) for block, tokens in inputs)
    return [(reach.max() / reach.median()).item() for reach in ranges]


@pytest.mark.parametrize("changes", SWITCHES.values(), ids=SWITCHES)
@torch.no_grad()
def test_the_logits_stay_and_the_checkpoint_too(changes, pixels):
    checkpoint = toy_checkpoint(**changes)
    before = copy.deepcopy(checkpoint.model.state_dict())
    images = torch.randn(2, 3, 24, 40)
    expected = checkpoint.model(images)
    found = smoothed(checkpoint, pixels)(images)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4 * expected.abs().max().item())
    assert all(torch.equal(before[name], value) for name, value in checkpoint.model.state_dict().items())


@torch.no_grad()
def test_an_outlying_channel_is_shared_with_the_weights(pixels):
    checkpoint = toy_checkpoint()
    for block in checkpoint.model.blocks:
        block.norm1.weight[CHANNEL] *= FACTOR
        block.norm1.bias[CHANNEL] *= FACTOR
        block.attn.qkv.weight[:, CHANNEL] /= FACTOR
    images = torch.randn(4, 3, 24, 40)
    assert min(unevenness(checkpoint.model, images)) > 20
    assert max(unevenness(smoothed(checkpoint, pixels), images)) < 4
