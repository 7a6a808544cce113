"""model/resnet.py: standardised kernels in both dialects, TensorFlow's padding, and the shapes of the stages."""

import numpy as np
import pytest
import torch
from torch import nn

from model.checkpoints import load_checkpoint
from model.resnet import ResNet, StdConv2d
from tests.support.altered import GOLDEN

BY_FORMULA = {
    "flax": lambda w: (w - w.mean()) / (w.std() + 1e-5),
    "timm": lambda w: (w - w.mean()) / np.sqrt(w.var() + 1e-8),
}


@torch.no_grad()
@pytest.mark.parametrize("numerics", ["timm", "flax"])
def test_kernels_are_standardised_in_the_dialect_of_the_library(numerics):
    conv = StdConv2d(4, 8, size=3, numerics=numerics)
    conv.weight.mul_(1e-3)  # small enough for the two constants to tell
    expected = np.stack([BY_FORMULA[numerics](kernel) for kernel in conv.weight.double().numpy()])
    torch.testing.assert_close(conv.kernel(), torch.from_numpy(expected).float(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("case", "numerics", "eps"), [("google-hybrid/checkpoint.npz", "flax", 1e-6), ("timm-hybrid", "timm", 1e-5)]
)
def test_every_layer_of_a_stem_has_the_constants_of_its_library(case, numerics, eps):
    """They are too small for the numbers of tests/golden to show."""
    layers = [*load_checkpoint(GOLDEN / case).model.patch_embed.backbone.modules()]
    assert {layer.numerics for layer in layers if isinstance(layer, StdConv2d)} == {numerics}
    assert {layer.eps for layer in layers if isinstance(layer, nn.GroupNorm)} == {eps}


@torch.no_grad()
@pytest.mark.parametrize(
    ("layers", "channels", "stride"), [((), 64, 4), ((1,), 256, 4), ((1, 2), 512, 8), ((1, 1, 1), 1024, 16)]
)
def test_stages_halve_the_image_and_double_the_channels(layers, channels, stride):
    network = ResNet(layers, numerics="timm")
    assert network.channels == channels
    assert network(torch.randn(2, 3, 32, 48)).shape == (2, channels, 32 // stride, 48 // stride)
