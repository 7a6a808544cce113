"""The two graphs of a model in one, for CPUs (app/inference/engine.py: CpuEngine): the branches of an `If`.

OpenVINO 2026.4 packs a weight that both read once. It wants one output of the branches, and a name for each output of
their nodes.
"""

import onnx
from onnx import TensorProto, helper

ROWS = "rows"


def combine(classify: onnx.ModelProto, explain: onnx.ModelProto) -> onnx.ModelProto:
    """images, asked, explain (bool) -> rows: all outputs of the explaining graph, or of the lean one, flat and side by
    side. Initialisers of one name are the same.
    """
    tensors = {tensor.name: tensor for graph in (classify, explain) for tensor in graph.graph.initializer}
    choice = helper.make_node("If", ["explain"], [ROWS], then_branch=_rows(explain), else_branch=_rows(classify))
    return helper.make_model(
        helper.make_graph(
            [choice],
            explain.graph.name,
            [*explain.graph.input, helper.make_tensor_value_info("explain", TensorProto.BOOL, [])],
            [_floats(ROWS)],
            initializer=[*tensors.values()],
        ),
        opset_imports=explain.opset_import,
        ir_version=explain.ir_version,
        producer_name=explain.producer_name,
        producer_version=explain.producer_version,
    )


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
