"""The graphs of every pooling beside every other switch, in both engines of a CPU."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import onnx
import pytest
import torch

from app.bundle import COMBINED_GRAPH
from app.inference.engine import Outputs
from export.bundle import write_graphs
from export.graphs import MOST_LIKELY, ExplainGraph
from export.parity import max_differences
from export.precision import model_for
from export.reference import reference
from export.trace import trace
from tests.support.beside import networks
from tests.support.branches import branches
from tests.support.engines import ENGINES
from tests.support.every_operator import OPERATORS
from tests.support.operators import operators_in_torch
from tests.support.toy import toy_checkpoint

OF_CLASSES = ("classes", "evidence", "evidence_rest", "evidence_heads")
IMAGES = 3  # other than the exporter's own example
ADDED = {"Flatten", "QuantizeLinear", "DequantizeLinear"}  # by export/combine.py, and in int8, which no GPU runs
SIDE = 56  # pixels: the parts of 49 patches do not add up to 1 exactly, and a product with 1 would be left out
LIMITS = {"fp32": 1e-4, "bf16": 0.05, "int8": 0.05}  # from the same numbers in torch, rounded alike


def cases() -> Iterator[Any]:
    """A network and whether its batch is fixed, which takes half of the time. It is not in those that have a value of a
    switch that none before them has, so that each value is exported for any number of images.
    """
    had: set[str] = set()
    for number, change in enumerate(networks()):
        values = {*map(repr, change.items())}
        yield pytest.param(change, values <= had, id=f"{change['pool']} {number}")
        had |= values


@pytest.mark.parametrize(("change", "fixed"), [*cases()])
def test_both_engines_give_the_networks_numbers(change, fixed, tmp_path, monkeypatch):
    if fixed:
        monkeypatch.setattr("export.bundle.trace", partial(trace, images=IMAGES))
    plain = {"precision": "fp32", "image_size": (SIDE, SIDE), "num_classes": MOST_LIKELY}
    facts = plain | {"depth": change.get("head_layers", 1)} | change
    precision = facts.pop("precision")
    toy = replace(toy_checkpoint(**facts), temperature=2.0)
    pixels = np.random.default_rng(0).integers(0, 256, (IMAGES, SIDE, SIDE, 3), dtype=np.uint8)
    model = model_for(toy, precision, pixels)
    graph = ExplainGraph(replace(toy, model=model), precision)
    with operators_in_torch(), torch.no_grad():
        inputs = graph.example(IMAGES) | {"images": torch.from_numpy(pixels)}
        numbers = (values.numpy() for values in graph(**inputs))
        expected = by_class(dict(zip((*graph.outputs, *graph.arrays), numbers, strict=True)))
    if precision == "fp32":
        check(reference(toy, pixels, expected["classes"]), expected, LIMITS["fp32"])
    written = write_graphs(tmp_path, model, toy, precision)
    combined = onnx.load(tmp_path / COMBINED_GRAPH)
    assert products_with_vectors(combined) == []
    assert {node.op_type for node in branches(combined.graph)["explain"].node} - ADDED <= OPERATORS
    (other,) = {*ENGINES.values()} - {type(written)}
    how = {"graph": tmp_path / COMBINED_GRAPH, "layout": written.layout, "precision": precision, "threads": 1}
    for engine in (written, other(**how)):
        explained = by_class(engine.run("explain", pixels))
        check(expected, explained, LIMITS[precision])
        check(expected, explained | engine.run("classify", pixels), LIMITS[precision])
        check(expected, explained | engine.run("tokens", pixels), LIMITS[precision])


def by_class(outputs: Outputs) -> Outputs:
    """In the order of the classes, and not of their logits, which roundings may exchange."""
    order = outputs["classes"].argsort(axis=1)
    ordered = {name: outputs[name][np.arange(len(order))[:, np.newaxis], order] for name in OF_CLASSES}
    if "lens" in outputs:
        ordered["lens"] = np.take_along_axis(outputs["lens"], order[:, np.newaxis], axis=2)
    return outputs | ordered


def check(expected: Outputs, found: Outputs, limit: float) -> None:
    differences = max_differences(expected, found)
    assert max(differences.values()) < limit, differences


def products_with_vectors(proto: onnx.ModelProto) -> list[str]:
    """Matrix products with a factor of one dimension, which OpenVINO scales wrongly."""
    graph = onnx.shape_inference.infer_shapes(proto).graph
    graphs = branches(graph).values()
    values = [*graph.input, *(value for branch in graphs for value in branch.value_info)]
    dimensions = {value.name: len(value.type.tensor_type.shape.dim) for value in values}
    dimensions |= {tensor.name: len(tensor.dims) for tensor in graph.initializer}
    products = [node for branch in graphs for node in branch.node if node.op_type == "MatMul"]
    three = 3  # of attention, an operator whose shapes ONNX does not infer
    return [node.name for node in products if min(dimensions.get(name, three) for name in node.input) == 1]
