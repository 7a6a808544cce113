"""The graphs of networks that have every pooling beside every other switch, in both engines of a CPU."""

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Literal, get_args, get_origin, get_type_hints

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
from model.config import RopeConfig, ViTConfig
from tests.support.branches import branches
from tests.support.engines import ENGINES
from tests.support.every_operator import OPERATORS
from tests.support.operators import operators_in_torch
from tests.support.toy import toy_checkpoint, toy_config

Change = dict[str, Any]

OF_CLASSES = ("classes", "evidence", "evidence_rest", "evidence_heads")
IMAGES = 3  # other than the exporter's own example
ADDED = {"Flatten", "QuantizeLinear", "DequantizeLinear"}  # by export/combine.py, and in int8, which no GPU runs
SIDE = 56  # pixels: the parts of 49 patches do not add up to 1 exactly, and a product with 1 would be left out
LIMITS = {"fp32": 1e-4, "bf16": 0.05, "int8": 0.05}  # from the same numbers in torch, rounded alike
TOGETHER: dict[str, tuple[Change, ...]] = {  # fields that say something only beside others, and numbers
    "distillation": ({}, {"distillation_token": True}, {"distillation_token": True, "distillation_head": True}),
    "representation": (
        {},
        {"representation_size": 9},
        {"representation_size": 9, "representation": "linear", "representation_bias": False},
    ),
    "rope": ({}, {"rope": RopeConfig(pairs="halves")}, {"rope": RopeConfig(kind="learned")}),
    "stem": ({}, {"stem_layers": (1, 1)}),
    "registers": ({}, {"registers": 2}),
    "width of attention": ({}, {"attn_dim": 24}),
    "sizes of the pool": ({}, {"pool_heads": 4, "pool_mlp_dim": 40}),
    "layers of the head": ({}, {"head_layers": 2}),
    "precision": ({}, {"precision": "int8"}, {"precision": "bf16"}),
}
ALIKE = {  # the graph has the same operators whatever they are
    *("image_size", "patch_size", "width", "depth", "mlp_dim", "heads", "norm_eps", "position_resize", "stem_numerics"),
    "num_classes",  # without a head the rest is the same
}
ONCE = {"activation", "positions", "norm"}  # beside the first pooling alone


def switches() -> dict[str, tuple[Change, ...]]:
    """The changes that a field can make, or several together; first the least."""
    found = dict(TOGETHER)
    known = {field for changes in TOGETHER.values() for change in changes for field in change}
    for name, kind in get_type_hints(ViTConfig).items():
        if name not in known | ALIKE:
            values = (True, False) if kind is bool else get_args(kind)
            assert kind is bool or get_origin(kind) is Literal, f"{name}: say in {__file__} which values to try"
            plain = getattr(toy_config(), name)
            found[name] = tuple({name: value} for value in sorted(values, key=lambda value: value != plain))
    return found


def valid(change: Change) -> bool:
    try:
        toy_config(**{name: value for name, value in change.items() if name != "precision"})
    except ValueError:
        return False
    return True


def networks() -> Iterator[Change]:
    """Changes to the toy that between them have every pooling beside every value of every other switch.

    For each pooling a greedy choice: of each switch one that this pooling has not had yet.
    """
    others = switches()
    dice = random.Random(0)
    pools = others.pop("pool")
    for base in pools:
        left = [
            (name, index)
            for name, changes in others.items()
            for index, change in enumerate(changes)
            if (name not in ONCE or base is pools[0]) and valid(base | change)
        ]
        while left:
            (first, index), *_ = left
            network = base | others[first][index]
            had = {(first, index)}
            for name in dice.sample([*others], len(others)):
                new = [at for of, at in left if of == name]
                for at in [*dice.sample(new, len(new)), *range(len(others[name]))]:
                    if name != first and valid(network | others[name][at]):
                        network |= others[name][at]
                        had.add((name, at))
                        break
            left = [switch for switch in left if switch not in had]
            yield network


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
