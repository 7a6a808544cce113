"""What lower precision gains and costs on a CPU: `--precision int8`, and the alternatives that were tried.

Speed is that of the lean graph of ViT-S/16 against a plain `torch.onnx.export`, both in OpenVINO. Agreement with
float32 and accuracy are the demo model's on its held-out images. Agreement is measured once more with planted outliers:
in each block two channels of each norm are multiplied by 30 and the weights that read them divided by 30, which leaves
the network's function as it is.
"""

import copy
import dataclasses
import statistics
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import openvino
import torch
from torch import nn

from export.agreement import agreement
from export.answers import Answers
from export.graphs import ExplainGraph
from export.image_spec import image_spec
from export.images import RANGES, drawn_images, reference_pixels
from export.onnx_file import part
from export.precision import LARGEST_IN_ATTENTION, LARGEST_INT8, SMALLEST_SCALE, QuantisedLinear, lower, model_for
from export.ranges import measure as measure_ranges
from export.reference import normalised
from export.rewrite import FusedAttention, Linear
from export.trace import trace
from model.blocks import Block
from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import Checkpoint
from model.demo.__main__ import WEIGHTS
from model.vit import VisionTransformer
from tests.benchmarks.plain_export import export_plainly
from tests.benchmarks.random_model import random_checkpoint
from tests.benchmarks.record import Row, Rows
from tests.benchmarks.rounds import cpu_ms, in_turn
from tests.benchmarks.spread import ratios

VARIANT = "S/16"
BATCHES = (1, 8)
ROUNDS = 15
OUTLIERS, OUTLIER = (5, 77), 30.0
Change = Callable[[VisionTransformer], None]
Build = Callable[[Checkpoint, Path], None]


def measure() -> Rows:
    demo, random = load_checkpoint(WEIGHTS), random_checkpoint(VARIANT)
    planted = dataclasses.replace(demo, model=with_outliers(demo.model))
    images = drawn_images(image_spec(demo.preprocessing), labels=demo.labels)
    pixels, labels = images.judged, images.labels
    expected = reference(demo, pixels)
    rows: dict[str, Row] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        plain = folder / "plain.onnx"
        export_plainly(random.model, plain)
        requests = {"plain": request(plain)}
        for number, (name, build) in enumerate(BUILDS.items()):
            paths = [folder / f"{number}-{of}.onnx" for of in ("speed", "demo", "planted")]
            for checkpoint, path in zip((random, demo, planted), paths, strict=True):
                build(checkpoint, path)
            requests[name] = request(paths[0])
            found, hard = (
                agreement(Answers(expected=expected, lean=logits(request(path), pixels), labels=labels), images, demo)
                for path in paths[1:]
            )
            assert found.accuracy is not None
            rows[name] = {
                "linear layers of the blocks": name,
                "agreement": f"{found.top1:.2%}",
                "probability difference, mean": round(found.probability_mean, 4),
                "largest": round(found.probability_max, 2),
                "accuracy": f"{found.accuracy:.2%}",
                "agreement with outliers": f"{hard.top1:.2%}",
            }
        for batch in BATCHES:
            runs = {name: partial(cpu_ms, runner(of, batch)) for name, of in requests.items()}
            for run in runs.values():
                run()
            times = in_turn(runs, ROUNDS)
            for name, row in rows.items():
                row[f"time at batch {batch}"] = round(statistics.median(ratios(times[name], times["plain"])), 3)
    return list(rows.values())


@torch.inference_mode()
def reference(checkpoint: Checkpoint, pixels: np.ndarray) -> np.ndarray:
    """Logits of PyTorch in float32, (images, classes)."""
    return np.concatenate([checkpoint.model(normalised(batch, checkpoint)).numpy() for batch in batches(pixels)])


def logits(of: openvino.InferRequest, pixels: np.ndarray) -> np.ndarray:
    return np.concatenate([of.infer([batch])["logits"].copy() for batch in batches(pixels)])


def batches(pixels: np.ndarray) -> list[np.ndarray]:
    return [pixels[start : start + max(BATCHES)] for start in range(0, len(pixels), max(BATCHES))]


def request(path: Path) -> openvino.InferRequest:
    """On one core: its CPU time is disturbed least by other processes."""
    options = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    return openvino.Core().compile_model(path, "CPU", options).create_infer_request()


def runner(of: openvino.InferRequest, batch: int) -> Callable[[], object]:
    """A run on noise; a plain export takes normalised floats."""
    rng, (source,) = np.random.default_rng(0), of.model_inputs
    shape = [batch, *(side.get_length() for side in list(source.partial_shape)[1:])]
    images = rng.integers(0, 256, shape).astype(source.element_type.to_dtype())
    return lambda: of.infer([images])


@torch.no_grad()
def with_outliers(model: VisionTransformer) -> VisionTransformer:
    model, channels = copy.deepcopy(model), list(OUTLIERS)
    for block in model.blocks:
        assert isinstance(block, Block)
        for norm, reader in ((block.norm1, block.attn.qkv), (block.norm2, block.mlp.fc1)):
            assert isinstance(norm, nn.LayerNorm)
            norm.weight[channels] *= OUTLIER
            norm.bias[channels] *= OUTLIER
            reader.weight[:, channels] /= OUTLIER
    return model


def changed(change: Change, *, smooth: bool = True) -> Build:
    """Writes the lean graph with the blocks' layers changed."""

    def build(checkpoint: Checkpoint, path: Path) -> None:
        pixels = reference_pixels(image_spec(checkpoint.preprocessing), RANGES)
        model = model_for(checkpoint, "int8", pixels) if smooth else copy.deepcopy(checkpoint.model)
        if not smooth:
            measure_ranges(dataclasses.replace(checkpoint, model=model), pixels)
        graph = ExplainGraph(dataclasses.replace(checkpoint, model=model), "fp32")
        change(graph.network)
        onnx.save(part(trace(graph), graph.answers), path)

    return build


def as_exported(network: VisionTransformer) -> None:
    lower(network, "int8")


def attention_in_float32(network: VisionTransformer) -> None:
    for attention in _attentions(network):
        attention.reach = None
    lower(network, "int8")


def attention_in_8_bits(network: VisionTransformer) -> None:
    for attention in _attentions(network):
        assert attention.reach is not None
        attention.reach = nn.Buffer(attention.reach * (LARGEST_IN_ATTENTION / LARGEST_INT8))
    lower(network, "int8")


def symmetric(network: VisionTransformer) -> None:
    for layer in network.blocks.modules():
        if not isinstance(layer, Linear):
            continue
        assert layer.range is not None
        largest = layer.range.abs().max()
        layer.range = nn.Buffer(torch.stack([-largest, largest]))
    lower(network, "int8")


def weights_of(largest: int) -> Change:
    """Weights up to `largest` in each output, whatever their neighbours: with 127 products saturate without VNNI."""

    def change(network: VisionTransformer) -> None:
        sources = dict(network.blocks.named_modules())
        lower(network, "int8")
        for name, layer in network.blocks.named_modules():
            if isinstance(layer, QuantisedLinear):
                weight = sources[name].get_parameter("weight").detach()
                layer.scale = nn.Buffer((weight.abs().amax(0) / largest).clamp(min=SMALLEST_SCALE))
                layer.integers = nn.Buffer((weight / layer.scale).round().to(torch.int8))

    return change


def patches_too(network: VisionTransformer) -> None:
    """Pixels are integers already; only weights are rounded."""
    lower(network, "int8")
    patch_embed = network.get_submodule("patch_embed")
    projection = patch_embed.get_submodule("proj")
    assert isinstance(projection, Linear)
    ranged = Linear(projection.weight, projection.bias, range=torch.tensor([0.0, 255.0]))
    patch_embed.add_module("proj", QuantisedLinear(ranged))


def _attentions(network: VisionTransformer) -> list[FusedAttention]:
    return [module for module in network.modules() if isinstance(module, FusedAttention)]


BUILDS: dict[str, Build] = {
    "fp32": changed(lambda network: None, smooth=False),
    "int8, as exported": changed(as_exported),
    "int8 without smoothing": changed(as_exported, smooth=False),
    "int8, queries and keys in float32": changed(attention_in_float32),
    "int8, queries and keys in 8 bits": changed(attention_in_8_bits),
    "int8, symmetric ranges": changed(symmetric),
    "int8, patch projection too": changed(patches_too),
    "int8, neighbours not limited": changed(weights_of(127)),
    "int8, weights in 7 bits": changed(weights_of(64)),
}
