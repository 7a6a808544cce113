"""The two graphs of a bundle in one, for CPUs (app/inference/combined.py): what explains is a branch of an `If`.

What OpenVINO 2026.4 needs: one output of the branch, and `TopK` outside of it.
"""

import copy

import onnx
from onnx import TensorProto, helper

from export.onnx_file import part

MAPS, NONE = "maps", "no_maps"


def combine(explain: onnx.ModelProto, answers: tuple[str, ...]) -> onnx.ModelProto:
    """images, explain (bool) -> `answers`, classes, maps: all other outputs, flat and side by side.

    `explain` is the explaining graph, `answers` are the outputs of the lean graph.
    """
    graph = explain.graph
    first = [value for value in graph.output if value.name in (*answers, "classes")]
    maps = [value.name for value in graph.output if value.name not in (*answers, "classes")]
    trunk = list(part(explain, [value.name for value in first]).graph.node)
    made = {name for node in trunk for name in node.output}
    rest = _with_dequantisers([node for node in graph.node if made.isdisjoint(node.output)], trunk)
    return helper.make_model(
        helper.make_graph(
            [
                *trunk,
                helper.make_node("If", ["explain"], [MAPS], then_branch=_joined(rest, maps), else_branch=_nothing()),
            ],
            graph.name,
            [*graph.input, helper.make_tensor_value_info("explain", TensorProto.BOOL, [])],
            [*first, helper.make_tensor_value_info(MAPS, TensorProto.FLOAT, ["rows", "numbers"])],
            initializer=graph.initializer,
        ),
        opset_imports=explain.opset_import,
        ir_version=explain.ir_version,
        producer_name=explain.producer_name,
        producer_version=explain.producer_version,
    )


def _with_dequantisers(branch: list[onnx.NodeProto], trunk: list[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """The nodes of the branch, which from now on dequantise themselves what they read: then they compute in integers,
    and keep a quarter of the memory.
    """
    read = {name for node in branch for name in node.input}
    copies = []
    for node in trunk:
        if node.op_type == "DequantizeLinear" and node.output[0] in read:
            copies.append(copy.deepcopy(node))
            copies[-1].output[0] = f"{node.output[0]}_again"
    renamed = {node.output[0].removesuffix("_again"): node.output[0] for node in copies}
    branch = copy.deepcopy(branch)
    for node in branch:
        node.input[:] = [renamed.get(name, name) for name in node.input]
    return copies + branch


def _joined(nodes: list[onnx.NodeProto], maps: list[str]) -> onnx.GraphProto:
    flat = [helper.make_node("Flatten", [name], [f"{name}_flat"]) for name in maps]
    joined = helper.make_node("Concat", [f"{name}_flat" for name in maps], [f"{MAPS}_joined"], axis=1)
    output = helper.make_tensor_value_info(f"{MAPS}_joined", TensorProto.FLOAT, ["rows", "numbers"])
    return helper.make_graph([*nodes, *flat, joined], "explaining", [], [output])


def _nothing() -> onnx.GraphProto:
    zero = helper.make_tensor("zero", TensorProto.FLOAT, [1, 1], [0.0])
    output = helper.make_tensor_value_info(NONE, TensorProto.FLOAT, [1, 1])
    return helper.make_graph([helper.make_node("Constant", [], [NONE], value=zero)], "lean", [], [output])
