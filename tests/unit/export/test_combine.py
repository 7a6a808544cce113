"""export/combine.py: one graph for CPUs, beside the three for CUDA or alone."""

import numpy as np
import onnx
import onnxruntime
import pytest

from app.bundle import COMBINED_GRAPH, GRAPH_FILES, load_bundle
from app.inference.engine import DIRECTION, MOST_LIKELY_CLASS, Asked
from app.settings import DEMO_BUNDLE
from export.images import reference_pixels
from tests.support.branches import branches
from tests.support.engines import engine_of


@pytest.mark.parametrize(("graph", "file"), GRAPH_FILES.items())
def test_all_graphs_of_a_bundle_compute_the_same(oblong_bundle, graph, file):
    for folder in (oblong_bundle, DEMO_BUNDLE):
        manifest = load_bundle(folder).manifest
        inputs = {"images": reference_pixels(manifest.image, 3)}
        inputs["asked"] = np.full((3, *manifest.explains["classes"]), MOST_LIKELY_CLASS)
        inputs["asked"][1, 0], inputs["asked"][2, 0] = 1, DIRECTION
        directions = np.random.default_rng(0).normal(size=(3, manifest.directions, manifest.features))
        inputs["directions"] = directions.astype(np.float32)
        session = onnxruntime.InferenceSession(folder / file, providers=["CPUExecutionProvider"])
        asked = [Asked(*of_image) for of_image in zip(inputs["asked"], inputs["directions"], strict=True)]
        found = engine_of(folder).run(graph, inputs["images"], asked)
        assert found.keys() == {output.name for output in session.get_outputs()}
        taken = {each.name: inputs[each.name] for each in session.get_inputs()}
        for name, rows in zip(found, session.run(list(found), taken), strict=True):
            assert found[name] == pytest.approx(rows, rel=1e-5, abs=1e-5), name


def test_a_bundle_has_the_graphs_that_run(oblong_bundle, lowered):
    """Nothing but a CPU runs int8."""
    assert {path.name for path in oblong_bundle.glob("*.onnx")} == {*GRAPH_FILES.values(), COMBINED_GRAPH}
    assert {path.name for path in lowered("int8").glob("*.onnx")} == {COMBINED_GRAPH}


def test_all_branches_read_one_tensor_for_a_weight(lowered):
    """Else it would be in memory twice. But the last block of all tokens alone is in products of integers."""
    graph = onnx.load(lowered("int8") / COMBINED_GRAPH, load_external_data=False).graph
    large = {tensor.name for tensor in graph.initializer if tensor.external_data}
    read = {name: {name for node in branch.node for name in node.input} for name, branch in branches(graph).items()}
    lean = large & read["classify"]
    assert lean
    assert lean <= read["explain"]
    more = large & read["tokens"] - read["explain"]
    assert lean <= read["tokens"]
    assert more
    assert all(name.startswith(f"network.blocks.{load_bundle(lowered('int8')).manifest.layers - 1}.") for name in more)
    assert not any(branch.initializer for branch in branches(graph).values())


def test_what_casts_the_integers_of_a_layer_has_a_name_of_its_own_for_them(lowered):
    """Else OpenVINO would compute that layer in float32."""
    graph = onnx.load(lowered("int8") / COMBINED_GRAPH, load_external_data=False).graph
    nodes = branches(graph)["explain"].node
    read = {kind: {n.input[0] for n in nodes if n.op_type == kind} for kind in ("Cast", "DequantizeLinear")}
    places = {tensor.name: tensor.external_data for tensor in graph.initializer}
    names = {name for name in read["Cast"] if name.endswith("integers_cast")}
    assert names
    assert read["Cast"].isdisjoint(read["DequantizeLinear"])
    assert all(places[name] == places[name.removesuffix("_cast")] for name in names)
