"""The three graphs of a model in one, for CPUs (app/inference/engine.py: CpuEngine): the branches of an `If`.

OpenVINO 2026.4 packs a weight that several read once. It wants one output of the branches, and a name for each output
of their nodes.
"""

import onnx
from onnx import TensorProto, helper

ROWS = "rows"


def combine(classify: onnx.ModelProto, explain: onnx.ModelProto, tokens: onnx.ModelProto) -> onnx.ModelProto:
    """images, asked, explain (bool), with_tokens (bool) -> rows: all outputs of the explaining graph, else of the graph
    of tokens, else of the lean one, flat and side by side. Initialisers of one name are the same.
    """
    graphs = (classify, explain, tokens)
    tensors = {tensor.name: tensor for graph in graphs for tensor in graph.graph.initializer}
    without_maps = _choice("with_tokens", _rows(tokens), _rows(classify), name="without_maps")
    choice = helper.make_node("If", ["explain"], [ROWS], then_branch=_rows(explain), else_branch=without_maps)
    flags = [helper.make_tensor_value_info(name, TensorProto.BOOL, []) for name in ("explain", "with_tokens")]
    return helper.make_model(
        helper.make_graph(
            [choice],
            explain.graph.name,
            [*explain.graph.input, *flags],
            [_floats(ROWS)],
            initializer=[*tensors.values()],
        ),
        opset_imports=explain.opset_import,
        ir_version=explain.ir_version,
        producer_name=explain.producer_name,
        producer_version=explain.producer_version,
    )


def _choice(flag: str, then: onnx.GraphProto, other: onnx.GraphProto, *, name: str) -> onnx.GraphProto:
    node = helper.make_node("If", [flag], [name], then_branch=then, else_branch=other)
    return helper.make_graph([node], name, [], [_floats(name)])


def _rows(proto: onnx.ModelProto) -> onnx.GraphProto:
    graph = onnx.GraphProto()
    graph.CopyFrom(proto.graph)
    for index, node in enumerate(graph.node):
        node.output[:] = [name or f"unread_{index}" for name in node.output]
    flat = []
    for output in proto.graph.output:
        name = output.name
        if output.type.tensor_type.elem_type != TensorProto.FLOAT:
            graph.node.append(helper.make_node("Cast", [name], [f"{name}_as_floats"], to=TensorProto.FLOAT))
            name = f"{name}_as_floats"
        graph.node.append(helper.make_node("Flatten", [name], [f"{name}_flat"]))
        flat.append(f"{name}_flat")
    graph.node.append(helper.make_node("Concat", flat, ["joined"], axis=1))
    return helper.make_graph(graph.node, graph.name, [], [_floats("joined")])


def _floats(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["images", "numbers"])
