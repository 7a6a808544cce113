"""export/fuse.py: fewer operators, and the same numbers."""

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest

from export.fuse import fuse
from export.graphs import ExplainGraph
from export.onnx_file import part
from export.trace import trace
from tests.support.switches import SWITCHES
from tests.support.toy import toy_checkpoint

CASES = {
    "plain": {},
    "a bias of scores": {"relative_bias": True},
    "norms of queries and keys": SWITCHES["registers, LayerScale, norms of Q and K, SwiGLU, norm after the pool"],
    "rotary positions": SWITCHES["rotary positions of DINOv3, registers"],
}


def traced(**changes):
    graph = ExplainGraph(toy_checkpoint(**changes), "fp32")
    proto = trace(graph)
    model = ir.from_proto(proto)
    fuse(model)
    return graph, proto, ir.to_proto(model)


@pytest.mark.parametrize("changes", CASES.values(), ids=CASES)
def test_all_outputs_stay(changes):
    graph, before, after = traced(**changes)
    images = np.random.default_rng(0).integers(0, 256, (3, 24, 40, 3), dtype=np.uint8)
    sessions = (onnxruntime.InferenceSession(proto.SerializeToString()) for proto in (before, after))
    runs = (session.run(list(graph.outputs), {"images": images}) for session in sessions)
    for name, expected, found in zip(graph.outputs, *runs, strict=True):
        np.testing.assert_allclose(found, expected, atol=2e-5 * np.abs(expected).max(), err_msg=name)


def test_what_the_lean_graph_computes():
    """Keys and values come from their products. The first norm is alone, because no sum precedes it."""
    graph, _, after = traced()
    lean = part(after, graph.answers).graph
    makers = {name: node.op_type for node in lean.node for name in node.output}
    attention = [node for node in lean.node if node.op_type == "MultiHeadAttention"]
    assert [[makers[name] for name in node.input] for node in attention] == [["Add", "MatMul", "MatMul"]] * 2
    operators = [node.op_type for node in lean.node]
    assert operators.count("SkipLayerNormalization") == 4
    assert operators.count("LayerNormalization") == 1
