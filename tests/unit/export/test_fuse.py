"""export/fuse.py: fewer operators, and the same numbers."""

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest

from app.bundle import CLASSIFY_GRAPH, EXPLAIN_GRAPH, load_bundle
from app.inference.engine import MOST_LIKELY_CLASS
from export.fuse import fuse
from export.images import reference_pixels
from tests.golden.test_checkpoints import FOLDER


def fused(proto: onnx.ModelProto) -> onnx.ModelProto:
    model = ir.from_proto(proto)
    fuse(model)
    return ir.to_proto(model)


@pytest.fixture(params=["plain", "a bias of scores", "rotary positions", "norms of queries and keys"])
def folder(request, oblong_bundle, golden_bundle, switched):
    """The bundle of a network with that, in float32."""
    match request.param:
        case "plain":
            return oblong_bundle
        case "a bias of scores":
            return golden_bundle(FOLDER / "huggingface-beit")
        case "rotary positions":
            return golden_bundle(FOLDER / "dinov3")
        case _:
            return switched("parallel branches")


def test_all_outputs_stay(folder):
    before = onnx.load(folder / EXPLAIN_GRAPH)
    outputs = [value.name for value in before.graph.output]
    images = reference_pixels(load_bundle(folder).manifest.image, 3)
    sessions = (onnxruntime.InferenceSession(proto.SerializeToString()) for proto in (before, fused(before)))
    manifest = load_bundle(folder).manifest
    asked = np.full((3, manifest.explains["classes"][0]), MOST_LIKELY_CLASS)
    directions = np.zeros((3, manifest.directions, manifest.features), np.float32)
    inputs = {"images": images, "asked": asked, "directions": directions}
    runs = (session.run(outputs, inputs) for session in sessions)
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
