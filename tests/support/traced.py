"""The graph of a bundle, as `trace` gave it when the bundle was exported."""

from pathlib import Path

import onnx

from export.graphs import ExplainGraph


def graph_in(bundle: Path, graph: ExplainGraph) -> onnx.ModelProto:
    """In the place of the trace of `graph`, put together from the parts that are files."""
    whole, tokens = (onnx.load(bundle / f"{name}.onnx") for name in ("explain", "tokens"))
    known = {name for node in whole.graph.node for name in node.output}
    known |= {tensor.name for tensor in whole.graph.initializer}
    whole.graph.node.extend(node for node in tokens.graph.node if known.isdisjoint(node.output))
    whole.graph.initializer.extend(tensor for tensor in tokens.graph.initializer if tensor.name not in known)
    whole.graph.output.extend(output for output in tokens.graph.output if output.name in graph.arrays)
    return whole
