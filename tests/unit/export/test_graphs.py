"""export/graphs.py and export/onnx_file.py: the operators that make the graphs fast, and one copy of the weights."""

from collections import Counter
from dataclasses import replace
from shutil import copyfile

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from app.inference.engine import DIRECTION
from export.graphs import ExplainGraph
from export.onnx_file import strip_provenance
from export.parity import max_differences
from export.precision import QuantisedLinear, model_for
from export.reference import reference
from tests.golden.test_checkpoints import FOLDER
from tests.support.branches import branches
from tests.support.familiar import knowing
from tests.support.operators import operators_in_torch
from tests.support.switches import SWITCHES
from tests.support.toy import toy_checkpoint

LAYERS = 2
LINEAR = ("attn.q", "attn.k", "attn.v", "attn.proj", "mlp.fc1", "mlp.fc2")  # of a block: what int8 rounds


def load(bundle, name) -> onnx.ModelProto:
    return onnx.load(bundle / f"{name}.onnx", load_external_data=False)


def optimised(bundle, name, folder) -> Counter[str]:
    """Operators that ONNX Runtime runs on the CPU."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(folder / "optimised.onnx")
    options.log_severity_level = 3  # it warns that the file is for this machine alone
    onnxruntime.InferenceSession(bundle / f"{name}.onnx", options, providers=["CPUExecutionProvider"])
    return operators(folder, "optimised")


def operators(bundle, name) -> Counter[str]:
    return Counter(node.op_type for node in load(bundle, name).graph.node)


def test_tokens_need_the_rest_of_the_last_block_and_nothing_else(oblong_bundle):
    lean, tokens = operators(oblong_bundle, "classify"), operators(oblong_bundle, "tokens")
    more = {name: count for name, count in (tokens - lean).items() if name in ("MatMul", "Softmax")}
    assert more == {"MatMul": 4}  # the query, the projection and the MLP of the other tokens
    assert tokens["MultiHeadAttention"] == lean["MultiHeadAttention"] + 1


@pytest.mark.parametrize("name", ["classify", "explain"])
def test_attention_is_one_fused_operator_a_layer(oblong_bundle, name):
    counts = operators(oblong_bundle, name)
    assert counts["MultiHeadAttention"] == counts["Gelu"] == LAYERS
    lens = LAYERS - 1 if name == "explain" else 0  # the head's norm on every layer but the last, which has it anyway
    assert counts["LayerNormalization"] == 2 * LAYERS + 1 + lens
    assert counts["Conv"] == counts["GatherND"] == 0  # older CUDA kernels replay GatherND wrongly
    if name == "classify":  # it never holds an attention matrix
        assert counts["Softmax"] == 0
        assert counts["MatMul"] == 1 + 6 * LAYERS + 1  # patch projection, q k v proj fc1 fc2, head


@pytest.mark.parametrize(("name", "expected"), [("classify", 1), ("explain", 4)])
def test_shapes_are_not_computed_at_run_time(oblong_bundle, name, expected):
    """One to give every picture its class token, three for the classes that are explained; none in the blocks."""
    graph = load(oblong_bundle, name).graph
    batch, *sides = graph.input[0].type.tensor_type.shape.dim
    assert (batch.dim_param, [side.dim_value for side in sides]) == ("batch", [24, 40, 3])
    made_by = {output: node for node in graph.node for output in node.output}
    shapes = [node for node in graph.node if node.op_type == "Shape"]
    assert len(shapes) == expected
    assert shapes[0].input[0] == "images"
    for node in graph.node:
        sources = [made_by[name].op_type for name in node.input if name in made_by]
        assert "Shape" not in sources or node.op_type in ("Concat", "Expand", "Reshape")


HEADLESS = {
    "no head": {"num_classes": 0},
    "no head, attention pooling": {"num_classes": 0, "pool": "map", "class_token": False},
    **{
        f"no head, {name} of a layer": {"num_classes": 0, "representation_size": 9, "representation": name}
        for name in ("tanh", "linear", "gelu", "relu", "sigmoid")
    },
}


LIMITS = {"fp32": 1e-4, "fp16": 0.01, "int8": 0.2}


@pytest.mark.parametrize(
    ("changes", "precision"),
    [
        *(
            pytest.param(SWITCHES[name], precision, id=f"{name}, {precision}")
            for name in SWITCHES
            for precision in LIMITS
        ),
        *(pytest.param(HEADLESS[name], "fp32", id=name) for name in HEADLESS),  # whose blocks are as those with a head
    ],
)
def test_every_switch_gives_the_networks_numbers(changes, precision):
    toy = replace(knowing(toy_checkpoint(**changes)), temperature=2.0)
    pixels = np.random.default_rng(0).integers(0, 256, (2, 24, 40, 3), dtype=np.uint8)
    model = model_for(toy, precision, pixels)
    graph = ExplainGraph(replace(toy, model=model), precision, layers=(1, LAYERS))
    inputs = graph.example(len(pixels)) | {"images": torch.from_numpy(pixels)}
    of_the_other = reference(toy, pixels, None if "asked" not in inputs else inputs["asked"].numpy())["embedding"][::-1]
    inputs["directions"][:, -1] = torch.from_numpy(of_the_other.copy())
    if "asked" in inputs:
        inputs["asked"][:, -1] = DIRECTION
    with operators_in_torch(), torch.no_grad():
        numbers = (values.numpy() for values in graph(**inputs))
        found = dict(zip((*graph.outputs, *graph.arrays), numbers, strict=True))
    assert [*graph.arrays] == ["tokens", "layer_1", f"layer_{LAYERS}"]
    directions = inputs["directions"].numpy()
    differences = max_differences(reference(toy, pixels, found.get("classes"), directions), found, directions)
    assert "receipt" in differences
    assert max(differences.values()) < LIMITS[precision]
    layers = graph.network.named_modules()
    rounded = {name.replace(".whole", "") for name, layer in layers if isinstance(layer, QuantisedLinear)}
    linear = {f"blocks.{i}.{name}" for i in range(LAYERS) for name in LINEAR}
    assert rounded == (linear if precision == "int8" else set())
    assert ("lens" in found) == (
        toy.config.num_classes > 0 and toy.config.head_layers == 1 and not toy.config.pools_by_attention
    )


@pytest.mark.parametrize(("name", "expected"), [("classify", 2 * LAYERS - 1), ("explain", 2 * LAYERS)])
def test_rotary_positions_are_one_operator_for_queries_and_one_for_keys(golden_bundle, name, expected):
    """With one table for all layers. In the lean graph the last query is of the class token, which is not turned."""
    graph = load(golden_bundle(FOLDER / "huggingface-dinov3-v5"), name).graph
    turned = [node for node in graph.node if node.op_type == "RotaryEmbedding"]
    assert len(turned) == expected
    assert len({tuple(node.input[1:]) for node in turned}) == 1
    assert not {"Sin", "Cos"} & {node.op_type for node in graph.node}


def external(bundle, name) -> set[tuple[str, ...]]:
    """File, offset and length of each tensor that lies outside a graph."""
    return {tuple(at.value for at in t.external_data[:3]) for t in load(bundle, name).graph.initializer} - {()}


def test_both_graphs_read_the_same_bytes(oblong_bundle):
    lean, explaining = external(oblong_bundle, "classify"), external(oblong_bundle, "explain")
    assert set() < lean < explaining
    assert [int(length) for _, _, length in explaining - lean] == [4 * 16**2]  # the distances between tokens
    weights = (oblong_bundle / "weights.bin").stat()
    assert weights.st_size < 1.3 * sum(int(length) for _, _, length in lean)
    assert weights.st_mode == (oblong_bundle / "explain.onnx").stat().st_mode  # not for its owner alone


def write_branch(bundle, name, folder) -> None:
    """A graph of its own of a branch of the combined graph, which is all that a bundle in int8 has."""
    model = load(bundle, "combined")
    branch = branches(model.graph)[name]
    outputs = [onnx.helper.make_tensor_value_info(value.name, onnx.TensorProto.FLOAT, None) for value in branch.output]
    inputs = [
        value
        for value in model.graph.input
        if value.name in ("images", "asked", "directions")[: 3 if name == "explain" else 1]
    ]
    graph = onnx.helper.make_graph(branch.node, name, inputs, outputs, model.graph.initializer)
    versions = {"opset_imports": model.opset_import, "ir_version": model.ir_version}
    onnx.save(onnx.helper.make_model(graph, **versions), folder / f"{name}.onnx")
    copyfile(bundle / "weights.bin", folder / "weights.bin")


@pytest.mark.parametrize("name", ["classify", "explain"])
def test_int8_runs_in_products_of_integers(lowered, tmp_path, name):
    """One rounding for Q, K and V together. In the last block only K and V are rounded, which read all tokens.

    The matrices of the other blocks are computed once, for logits and maps.
    """
    others = LAYERS - 1
    write_branch(lowered("int8"), name, tmp_path)
    counts = optimised(tmp_path, name, tmp_path)
    assert counts["MatMulIntegerToFloat"] == 6 * others + 2
    assert counts["MultiHeadAttention"] == 1
    written = operators(tmp_path, name)
    of_inputs, of_attention = 4 * others + 1, 2 * others
    assert written["QuantizeLinear"] == of_inputs + of_attention
    assert written["Softmax"] == others + (2 if name == "explain" else 0)  # the last block's matrix, and the lens


@pytest.mark.parametrize("name", ["classify", "explain"])
def test_nothing_of_the_exporting_machine_is_left(oblong_bundle, name):
    proto = load(oblong_bundle, name)
    before = proto.SerializeToString()
    strip_provenance(proto)
    assert proto.SerializeToString() == before
    assert b".py" not in before
