"""export/combine.py: one graph for CPUs beside the two for CUDA."""

import numpy as np
import onnx
import onnxruntime
import pytest

from app.bundle import CLASSIFY_GRAPH, COMBINED_GRAPH, EXPLAIN_GRAPH, load_bundle
from export.images import reference_pixels
from tests.support.engines import engine_of


@pytest.mark.parametrize(("graph", "file"), [("classify", CLASSIFY_GRAPH), ("explain", EXPLAIN_GRAPH)])
def test_all_three_graphs_of_a_bundle_compute_the_same(oblong_bundle, graph, file):
    images = reference_pixels(load_bundle(oblong_bundle).manifest.image, 3)
    session = onnxruntime.InferenceSession(oblong_bundle / file, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    alone = dict(zip(names, session.run(names, {"images": images}), strict=True))
    found = engine_of(oblong_bundle).run(graph, images)
    assert found.keys() == alone.keys()
    for name, rows in alone.items():
        assert np.asarray(found[name]) == pytest.approx(np.asarray(rows), abs=1e-5), name


def test_the_branch_reads_integers_where_the_trunk_has_them(int8_bundle):
    """Else it would compute in float32, and keep four times the memory."""
    graph = onnx.load(int8_bundle / COMBINED_GRAPH, load_external_data=False).graph
    (choice,) = (node for node in graph.node if node.op_type == "If")
    (branch,) = (attribute.g for attribute in choice.attribute if attribute.name == "then_branch")
    dequantised = {node.output[0] for node in graph.node if node.op_type == "DequantizeLinear"}
    assert dequantised.isdisjoint(name for node in branch.node for name in node.input)


def test_what_casts_the_integers_of_a_layer_has_a_name_of_its_own_for_them(int8_bundle):
    """Else OpenVINO would compute that layer in float32."""
    graph = onnx.load(int8_bundle / EXPLAIN_GRAPH, load_external_data=False).graph
    read = {kind: {n.input[0] for n in graph.node if n.op_type == kind} for kind in ("Cast", "DequantizeLinear")}
    places = {tensor.name: tensor.external_data for tensor in graph.initializer}
    names = {name for name in read["Cast"] if name.endswith("integers_cast")}
    assert names
    assert read["Cast"].isdisjoint(read["DequantizeLinear"])
    assert all(places[name] == places[name.removesuffix("_cast")] for name in names)
