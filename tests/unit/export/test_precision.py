"""export/precision.py: which layers are rounded, and how far."""

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from torch import nn
from torch.nn import functional

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
    assert ((layer.weight - weight).abs() <= 0.5001 * layer.scale).all()


def test_a_step_is_as_small_as_the_largest_weight_or_pair_of_neighbours_allows():
    weight = torch.tensor([[3.0, 3.0, 3.0], [0.0, 1.0, -3.0], [0.0, 0.0, 0.0]])
    layer = QuantisedLinear(Linear(weight, None))
    torch.testing.assert_close(127 * layer.scale, torch.tensor([3.0, 4.0, 3.0]))


@given(weight=arrays(np.float32, array_shapes(min_dims=2, max_dims=2, max_side=9), elements=st.floats(-8, 8, width=32)))
def test_no_two_neighbouring_products_saturate_in_16_bits(weight):
    integers = QuantisedLinear(Linear(torch.from_numpy(weight), None)).integers.int()
    pairs = functional.pad(integers, (0, 0, 0, len(integers) % 2)).unflatten(0, (-1, 2)).sum(1)
    assert (255 * pairs).abs().max() < 2**15


@pytest.mark.parametrize("rows", [1, 2, 60])
@pytest.mark.parametrize("inputs", [6, 401])
def test_the_kernel_of_this_processor_adds_the_integers_without_saturation(rows, inputs):
    """Inputs at the end of their range and weights of one sign saturate without VNNI if any do."""
    layer = QuantisedLinear(Linear(torch.rand(inputs, 40, generator=torch.Generator().manual_seed(0)).sqrt(), None))
    x = np.ones((rows, inputs), np.float32)
    x[:, ::5] = 0.25
    found = product(x, layer.integers.numpy(), layer.scale.numpy())
    expected = np.rint(x * 255).astype(float) @ layer.integers.double().numpy() * layer.scale.numpy() / 255
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def product(x, integers, scale):
    """What the two operators of QuantisedLinear give for x (rows, inputs)."""
    text = f"""<ir_version: 10, opset_import: ["" : 20, "com.microsoft" : 1]>
    graph (float[rows, {x.shape[1]}] x) => (float[rows, {len(scale)}] y) {{
        q, step, zero = DynamicQuantizeLinear(x)
        y = com.microsoft.MatMulIntegerToFloat(q, integers, step, scale, zero)
    }}"""
    model = onnx.parser.parse_model(text)
    arrays = {"integers": integers, "scale": scale}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in arrays.items())
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


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
