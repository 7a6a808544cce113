"""export/precision.py: which layers are rounded, and how far."""

import pytest
import torch
from torch import nn

from export.image_spec import image_spec
from export.images import reference_pixels
from export.precision import QuantisedLinear, lower, model_for
from export.rewrite import Linear, rewrite
from tests.support.switches import SWITCHES
from tests.support.toy import toy_checkpoint

LAYERS = {"attn.q", "attn.k", "attn.v", "attn.proj", "mlp.fc1", "mlp.fc2"}


def lowered(precision, **changes):
    checkpoint = toy_checkpoint(**changes)
    network = rewrite(checkpoint.model, checkpoint.preprocessing)
    lower(network, precision)
    return network


@pytest.mark.parametrize("changes", SWITCHES.values(), ids=SWITCHES)
def test_int8_is_for_all_linear_layers_of_the_blocks_and_for_no_other(changes):
    network = lowered("int8", **changes)
    quantised = {name for name, layer in network.named_modules() if isinstance(layer, QuantisedLinear)}
    assert quantised == {f"blocks.{i}.{name}" for i in range(2) for name in LAYERS}


def test_a_weight_is_off_by_half_a_step_of_its_output_at_most():
    weight = torch.randn(20, 3) * torch.tensor([0.01, 1.0, 100.0])
    layer = QuantisedLinear(Linear(weight, None))
    step = weight.abs().amax(0) / 127
    assert ((layer.weight - weight).abs() <= 0.5001 * step).all()
    assert layer.integers.abs().amax(0).tolist() == [127, 127, 127]


def test_an_output_without_weights_stays_zero():
    layer = QuantisedLinear(Linear(torch.tensor([[0.0, 1.0], [0.0, -2.0]]), None))
    assert layer.weight[:, 0].tolist() == [0, 0]


def test_fp16_is_for_the_blocks_alone():
    network = lowered("fp16", relative_bias=True)
    for name, parameter in network.named_parameters():
        assert parameter.dtype == (torch.float16 if name.startswith("blocks.") else torch.float32), name


@pytest.mark.parametrize(
    ("layer", "bias", "complaint"),
    [
        ("mlp.fc1", 7e4, r"blocks\.0\.mlp\.fc1\.bias has values beyond 65504"),
        ("mlp.fc2", 6e4, r"blocks\.1 gives values beyond 65504"),  # each is in range, the sum of two blocks is not
    ],
)
def test_what_fp16_cannot_hold_is_named(layer, bias, complaint):
    checkpoint = toy_checkpoint()
    for block in checkpoint.model.blocks:
        nn.init.constant_(block.get_submodule(layer).bias, bias)
    with pytest.raises(ValueError, match=complaint):
        model_for(checkpoint, "fp16", lambda: reference_pixels(image_spec(checkpoint.preprocessing), 24))
