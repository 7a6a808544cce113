"""export/fuse.py: fewer operators, and the same numbers."""

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
import torch

from app.bundle import CLASSIFY_GRAPH, EXPLAIN_GRAPH
from export.fuse import fuse
from export.graphs import ExplainGraph
from export.image_spec import image_spec
from export.images import reference_pixels
from export.trace import trace
from model.config import RopeConfig
from tests.support.toy import toy_checkpoint


def fused(proto: onnx.ModelProto) -> onnx.ModelProto:
    model = ir.from_proto(proto)
    fuse(model)
    return ir.to_proto(model)


OTHERS = {  # whose keys are more than a product and a bias, which then counts
    "a bias of scores": {"relative_bias": True, "positions": "none"},
    "rotary positions": {"rope": RopeConfig()},
    "norms of queries and keys": {"qk_norm": True},
}
IMAGES = 3


@pytest.fixture(params=["plain", *OTHERS])
def graph(request, oblong_bundle):
    """Of a network with that, in float32."""
    if request.param == "plain":
        return onnx.load(oblong_bundle / EXPLAIN_GRAPH)
    return trace(ExplainGraph(toy_checkpoint(depth=1, **OTHERS[request.param]), "fp32"), images=IMAGES)


def test_all_outputs_stay(graph):
    toy = toy_checkpoint()
    outputs = [value.name for value in graph.graph.output]
    inputs = ExplainGraph(toy, "fp32").example(IMAGES)
    inputs["images"] = torch.from_numpy(reference_pixels(image_spec(toy.preprocessing), IMAGES))
    given = {name: values.numpy() for name, values in inputs.items()}
    sessions = (onnxruntime.InferenceSession(proto.SerializeToString()) for proto in (graph, fused(graph)))
    runs = (session.run(outputs, given) for session in sessions)
    for name, expected, found in zip(outputs, *runs, strict=True):
        np.testing.assert_allclose(found, expected, atol=2e-5 * np.abs(expected).max(), err_msg=name)


def test_what_the_lean_graph_computes(oblong_bundle):
    """Keys and values come from their products. The first norm is alone, because no sum precedes it."""
    lean = fused(onnx.load(oblong_bundle / CLASSIFY_GRAPH)).graph
    makers = {name: node.op_type for node in lean.node for name in node.output}
    attention = [node for node in lean.node if node.op_type == "MultiHeadAttention"]
    assert [[makers[name] for name in node.input] for node in attention] == [["Add", "MatMul", "MatMul"]] * 2
    operators = [node.op_type for node in lean.node]
    assert operators.count("SkipLayerNormalization") == 4
    assert operators.count("LayerNormalization") == 1
