"""The graphs in a combined graph, which are the branches of its choices."""

from typing import cast

import onnx

from app.bundle import Graph


def branches(combined: onnx.GraphProto) -> dict[Graph, onnx.GraphProto]:
    explain, others = _of(combined)
    tokens, classify = _of(others)
    return {"classify": classify, "explain": explain, "tokens": tokens}


def _of(graph: onnx.GraphProto) -> tuple[onnx.GraphProto, onnx.GraphProto]:
    (choice,) = graph.node
    by_name = {attribute.name: cast("onnx.GraphProto", attribute.g) for attribute in choice.attribute}
    return by_name["then_branch"], by_name["else_branch"]
