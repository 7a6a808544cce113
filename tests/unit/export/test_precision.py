"""export/precision.py: how far layers are rounded. test_graphs.py has which of them are."""

import os
import platform
import subprocess
import sys
from itertools import product as product_of

import numpy as np
import onnx
import onnx.parser
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from torch import nn
from torch.nn import functional

from export.image_spec import image_spec
from export.images import reference_pixels
from export.precision import LARGEST_IN_ATTENTION, QuantisedLinear, lower, model_for
from export.ranges import measure
from export.reference import normalised
from export.rewrite import Linear, rewrite
from model.config import RopeConfig
from tests.support.operators import operators_in_torch
from tests.support.toy import toy_checkpoint


def lowered(precision, **changes):
    checkpoint = toy_checkpoint(**changes)
    model = model_for(checkpoint, precision, reference_pixels(image_spec(checkpoint.preprocessing), 8))
    network = rewrite(model, checkpoint.preprocessing)
    lower(network, precision)
    return network


def quantised(weight, *, low=0.0, high=1.0, moments=None) -> QuantisedLinear:
    moments = torch.eye(len(weight)) if moments is None else moments
    return QuantisedLinear(Linear(weight, None, range=torch.tensor([low, high]), moments=moments))


def test_a_weight_is_off_by_half_a_step_of_its_output_at_most():
    """Where an output has no weights, by nothing."""
    weight = torch.randn(20, 4) * torch.tensor([0.0, 0.01, 1.0, 100.0])
    layer = quantised(weight)
    assert ((layer.weight - weight).abs() <= 0.5001 * layer.scale).all()


@pytest.mark.parametrize(("low", "high"), [(-0.17, 3.0), (-2.0, 2.0), (0.5, 3.0), (-3.0, -0.5), (0.0, 0.0)])
def test_an_input_is_off_by_half_a_step_of_its_range_and_cut_off_beyond(low, high):
    rounding = quantised(torch.ones(1, 1), low=low, high=high).rounding
    x = torch.tensor([0.0, low, high, (low + high) / 3, 9.0, -9.0])
    with operators_in_torch():
        found = rounding(x)
    step = (max(high, 0) - min(low, 0)) / 255
    assert found[0] == 0
    np.testing.assert_allclose(found, x.clamp(min(low, 0), max(high, 0)), rtol=1e-6, atol=0.501 * step + 1e-20)


def test_queries_and_keys_have_the_steps_of_their_own_largest_numbers():
    toy = toy_checkpoint(depth=2, rope=RopeConfig())
    with torch.no_grad():
        toy.model.blocks[0].attn.qkv.weight[: toy.config.width] *= 7  # the queries
    pixels = reference_pixels(image_spec(toy.preprocessing), 8)
    measure(toy, pixels)
    network = rewrite(toy.model, toy.preprocessing)
    lower(network, "int8")
    attention, images = toy.model.blocks[0].attn, normalised(pixels, toy)
    with torch.no_grad():
        query, key, _ = attention._heads(toy.model.blocks[0].read(toy.model.layers(images)[0]))
    found = network.blocks[0].attn
    assert 78 * found.q_rounding.step == pytest.approx(query.abs().max().item(), rel=1e-4)
    assert 78 * found.k_rounding.step == pytest.approx(key.abs().max().item(), rel=1e-4)


def test_a_step_is_as_small_as_the_largest_weight_or_pair_of_neighbours_allows():
    weight = torch.tensor([[3.0, 3.0, 3.0], [0.0, 1.0, -3.0], [0.0, 0.0, 0.0]])
    torch.testing.assert_close(127 * quantised(weight).scale, torch.tensor([3.0, 4.0, 3.0]))


@given(weight=arrays(np.float32, array_shapes(min_dims=2, max_dims=2, max_side=9), elements=st.floats(-8, 8, width=32)))
def test_no_two_neighbouring_products_saturate_in_16_bits(weight):
    inputs = torch.randn(40, len(weight), generator=torch.Generator().manual_seed(0)).cumsum(1)
    integers = quantised(torch.from_numpy(weight), moments=inputs.T @ inputs).integers.int()
    pairs = functional.pad(integers, (0, 0, 0, len(integers) % 2)).unflatten(0, (-1, 2)).sum(1)
    assert (255 * pairs).abs().max() < 2**15


def test_inputs_that_go_together_make_good_what_each_weight_is_off_by():
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(200, 100, generator=generator).cumsum(1)
    weight = torch.randn(100, 4, generator=generator)
    off = [
        (inputs @ (quantised(weight, moments=moments).weight - weight)).square().mean()
        for moments in (torch.eye(100), inputs.T @ inputs / 200)
    ]
    assert off[1] < 0.2 * off[0]


def layer(inputs) -> QuantisedLinear:
    """Weights of one sign, which saturate without VNNI if any do."""
    return quantised(torch.rand(inputs, 40, generator=torch.Generator().manual_seed(0)).sqrt())


def product(of: QuantisedLinear) -> onnx.ModelProto:
    """x (rows, inputs) times the weights, as QuantisedLinear writes it."""
    text = f"""<ir_version: 10, opset_import: ["" : 20]>
    graph (float[rows, {len(of.integers)}] x) => (float[rows, 40] y) {{
        q = QuantizeLinear(x, step, zero)
        d = DequantizeLinear(q, step, zero)
        w = DequantizeLinear<axis = 1>(integers, scale)
        y = MatMul(d, w)
    }}"""
    step, zero = of.rounding.step, of.rounding.zero
    return parsed(text, step=step, zero=zero, integers=of.integers, scale=of.scale)


def scores() -> onnx.ModelProto:
    """Queries times keys, both x (batch, heads, tokens, width), at the ends of their range."""
    text = """<ir_version: 10, opset_import: ["" : 20]>
    graph (float[batch, 2, 30, 32] x) => (float[batch, 2, 30, 30] y) {
        q = QuantizeLinear(x, step, zero)
        query = DequantizeLinear(q, step, zero)
        flipped = Neg(x)
        k = QuantizeLinear(flipped, step, zero)
        key = DequantizeLinear(k, step, zero)
        turned = Transpose<perm = [0, 1, 3, 2]>(key)
        y = MatMul(query, turned)
    }"""
    return parsed(text, step=torch.tensor(1 / LARGEST_IN_ATTENTION), zero=torch.zeros((), dtype=torch.int8))


def parsed(text, **constants) -> onnx.ModelProto:
    model = onnx.parser.parse_model(text)
    tensors = (onnx.numpy_helper.from_array(tensor.numpy(), name) for name, tensor in constants.items())
    model.graph.initializer.extend(tensors)
    return model


IN_OPENVINO = """
import sys
from pathlib import Path
import numpy as np
import openvino
core, options = openvino.Core(), {"INFERENCE_PRECISION_HINT": "f32", "PERF_COUNT": True}
for path in Path(sys.argv[1]).glob("*.onnx"):
    request = core.compile_model(path, "CPU", options).create_infer_request()
    np.save(path.with_suffix(".out.npy"), request.infer([np.load(path.with_suffix(".npy"))])["y"])
    products = [node for node in request.profiling_info if node.node_type.startswith(("FullyConnected", "MatMul"))]
    assert [node.exec_type.lower()[-2:] for node in products] == ["i8"], products
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the instructions are those of x86-64")
@pytest.mark.parametrize("instructions", ["AVX2", "AVX512_CORE", "ALL"])
def test_openvino_adds_the_integers_without_saturation_on_every_kind_of_processor(tmp_path, instructions):
    expected = {}
    for rows, inputs in product_of((1, 2, 60), (6, 401)):
        of, x = layer(inputs), np.ones((rows, inputs), np.float32)
        x[:, ::5] = 0.25
        sums = np.rint(x * 255).astype(float) @ of.integers.double().numpy() * of.scale.numpy() / 255
        expected[f"{rows}-{inputs}"] = (product(of), x, sums)
    x = np.ones((3, 2, 30, 32), np.float32)
    x[..., ::5] = -0.25
    rounded = np.rint(LARGEST_IN_ATTENTION * x).astype(float) / LARGEST_IN_ATTENTION
    expected["scores"] = (scores(), x, -rounded @ rounded.swapaxes(-1, -2))
    for name, (model, x, _) in expected.items():
        onnx.save(model, tmp_path / f"{name}.onnx")
        np.save(tmp_path / f"{name}.npy", x)
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": instructions}
    subprocess.run([sys.executable, "-c", IN_OPENVINO, tmp_path], env=environment, check=True)
    for name, (_, _, sums) in expected.items():
        np.testing.assert_allclose(np.load(tmp_path / f"{name}.out.npy"), sums, rtol=1e-5, err_msg=name)


def test_fp16_is_for_the_blocks_alone():
    network = lowered("fp16", relative_bias=True)
    for name, parameter in network.named_parameters():
        assert parameter.dtype == (torch.float16 if name.startswith("blocks.") else torch.float32), name


def test_in_fp16_tf32_cuts_nothing_off_the_weights_of_pixels():
    proj = lowered("fp16").patch_embed.proj
    digits = proj.weight.detach().numpy().view(np.uint32)
    assert not (digits & 0x1FFF).any()
    assert (digits & 0x2000).any()


def test_in_fp16_grey_patches_keep_their_tokens_and_others_are_off_by_a_rounding():
    full, rounded = (lowered(precision).patch_embed.proj for precision in ("fp32", "fp16"))
    pixels = torch.full((1, 15, full.weight.shape[0]), 128.0)
    assert (rounded(pixels) - full(pixels)).abs().max() < 1e-4 * full(pixels).abs().max()
    pixels = torch.randint(0, 256, pixels.shape, generator=torch.Generator().manual_seed(0)).float()
    apart = (rounded(pixels) - full(pixels)).abs().max() / full(pixels).abs().max()
    assert 1e-5 < apart < 5e-4


@pytest.mark.parametrize(
    ("layer", "bias", "complaint"),
    [
        ("mlp.fc1", 7e4, r"blocks\.0\.mlp\.fc1\.bias has values beyond 65504"),
        ("mlp.fc2", 6e4, r"blocks\.1 gives values beyond 65504"),  # each is in range, the sum of two blocks is not
    ],
)
def test_the_error_names_numbers_beyond_fp16(layer, bias, complaint):
    checkpoint = toy_checkpoint()
    for block in checkpoint.model.blocks:
        nn.init.constant_(block.get_submodule(layer).bias, bias)
    with pytest.raises(ValueError, match=complaint):
        model_for(checkpoint, "fp16", reference_pixels(image_spec(checkpoint.preprocessing), 24))
