"""export/graphs.py and export/onnx_file.py: the operators that make the graphs fast, and one copy of the weights."""

from collections import Counter

import onnx
import pytest

from export.onnx_file import strip_provenance

LAYERS = 2


def load(bundle, name) -> onnx.ModelProto:
    return onnx.load(bundle / f"{name}.onnx", load_external_data=False)


def operators(bundle, name) -> Counter[str]:
    return Counter(node.op_type for node in load(bundle, name).graph.node)


@pytest.mark.parametrize("name", ["classify", "explain"])
def test_attention_is_one_fused_operator_a_layer(oblong_bundle, name):
    counts = operators(oblong_bundle, name)
    assert counts["MultiHeadAttention"] == LAYERS
    assert counts["Gelu"] == LAYERS
    lens = LAYERS - 1 if name == "explain" else 0  # the head's norm on every layer but the last, which has it anyway
    assert counts["LayerNormalization"] == 2 * LAYERS + 1 + lens
    assert counts["Conv"] == 0


def test_the_lean_graph_never_holds_an_attention_matrix(oblong_bundle):
    counts = operators(oblong_bundle, "classify")
    assert counts["Softmax"] == 0
    assert counts["MatMul"] == 1 + 6 * LAYERS + 1  # patch projection, q k v proj fc1 fc2, head


@pytest.mark.parametrize(("name", "expected"), [("classify", 1), ("explain", 4)])
def test_shapes_are_not_computed_at_run_time(oblong_bundle, name, expected):
    """One to give every picture its class token, three for the classes that are explained; none in the blocks."""
    graph = load(oblong_bundle, name).graph
    made_by = {output: node for node in graph.node for output in node.output}
    shapes = [node for node in graph.node if node.op_type == "Shape"]
    assert len(shapes) == expected
    assert shapes[0].input[0] == "images"
    for node in graph.node:
        sources = [made_by[name].op_type for name in node.input if name in made_by]
        assert "Shape" not in sources or node.op_type in ("Concat", "Expand", "Reshape")


def test_the_last_block_projects_the_class_token_alone(oblong_bundle):
    """Its query is (batch, 1, width): a Slice or Gather of one token stands before the last q projection."""
    graph = onnx.shape_inference.infer_shapes(onnx.load(oblong_bundle / "classify.onnx")).graph
    widths = {value.name: value.type.tensor_type.shape.dim for value in graph.value_info}
    queries = [node.input[0] for node in graph.node if node.op_type == "MultiHeadAttention"]
    lengths = [widths[name][1].dim_value for name in queries]
    assert lengths == [16] * (LAYERS - 1) + [1]


@pytest.mark.parametrize("name", ["classify", "explain"])
def test_inputs_are_bytes_and_only_the_batch_is_free(oblong_bundle, name):
    (images,) = load(oblong_bundle, name).graph.input
    batch, *rest = images.type.tensor_type.shape.dim
    assert images.type.tensor_type.elem_type == onnx.TensorProto.UINT8
    assert batch.dim_param
    assert [dim.dim_value for dim in rest] == [24, 40, 3]


def test_both_graphs_read_the_same_bytes(oblong_bundle):
    def locations(name):
        tensors = load(oblong_bundle, name).graph.initializer
        external = [t for t in tensors if t.data_location == onnx.TensorProto.EXTERNAL]
        assert external
        return {(t.external_data[0].value, t.external_data[1].value, t.external_data[2].value) for t in external}

    distances = 16 * 16 * 4  # bytes of the table of distances between tokens
    (extra,) = locations("explain") - locations("classify")
    assert int(extra[2]) == distances
    assert locations("classify") < locations("explain")
    size = (oblong_bundle / "weights.bin").stat().st_size
    assert size < 1.3 * sum(int(length) for _, _, length in locations("classify"))


@pytest.mark.parametrize("name", ["classify", "explain"])
def test_nothing_of_the_exporting_machine_is_left(oblong_bundle, name):
    proto = load(oblong_bundle, name)
    before = proto.SerializeToString()
    strip_provenance(proto)
    assert proto.SerializeToString() == before
    assert b".py" not in before
