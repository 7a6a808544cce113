"""What lower precision gains and costs on a CPU: `--precision int8`, and the alternatives that were tried.

Speed is that of the lean graph of ViT-S/16 against a plain `torch.onnx.export`. Agreement with float32 and accuracy are
the demo model's on its held-out images. Agreement is measured once more with planted outliers: in each block two
channels of each norm are multiplied by 30 and the weights that read them divided by 30, which leaves the network's
function as it is.
"""

import copy
import dataclasses
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static
from torch import Tensor, nn
from tqdm import tqdm

from app.bundle import Agreement
from app.images.preprocess import preprocess
from app.inference.contract import Graph, Outputs
from export.agreement import agreement
from export.answers import answers
from export.graphs import ClassifyGraph
from export.image_spec import image_spec
from export.images import RANGES, DrawnImages, reference_images, reference_pixels
from export.precision import SMALLEST_SCALE, QuantisedLinear, lower, model_for
from export.rewrite import FusedAttention, Linear
from export.trace import trace
from model.blocks import Block
from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import Checkpoint
from model.demo.__main__ import WEIGHTS
from model.mlp import Mlp
from model.vit import VisionTransformer
from tests.benchmarks.graph import runner
from tests.benchmarks.plain_export import export_plainly
from tests.benchmarks.random_model import random_checkpoint

VARIANT = "S/16"
BATCHES = (1, 8)
ROUNDS = 15
CALIBRATION = 32  # images for static quantisation
OUTLIERS, OUTLIER = (5, 77), 30.0
Build = Callable[[Checkpoint, Path], None]


def measure() -> list[dict[str, str | float]]:
    demo, random = load_checkpoint(WEIGHTS), random_checkpoint(VARIANT)
    planted = dataclasses.replace(demo, model=with_outliers(demo.model))
    rows: dict[str, dict[str, str | float]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        plain = folder / "plain.onnx"
        export_plainly(random.model, plain)
        sessions = {"plain": session(plain)}
        for number, (name, build) in enumerate(BUILDS.items()):
            paths = [folder / f"{number}-{of}.onnx" for of in ("speed", "demo", "planted")]
            for checkpoint, path in zip((random, demo, planted), paths, strict=True):
                build(checkpoint, path)
            sessions[name] = session(paths[0])
            found, hard = (
                measure_agreement(c, Lean(session(path))) for c, path in ((demo, paths[1]), (planted, paths[2]))
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
            times = processor_times({name: runner(s, batch) for name, s in sessions.items()})
            for name, row in rows.items():
                ratios = [mine / plain for mine, plain in zip(times[name], times["plain"], strict=True)]
                row[f"time at batch {batch}"] = round(statistics.median(ratios), 3)
    return list(rows.values())


def measure_agreement(checkpoint: Checkpoint, engine: "Lean") -> Agreement:
    images = DrawnImages(image_spec(checkpoint.preprocessing), labels=checkpoint.labels)
    found = answers(checkpoint, images, engine, time_limit_s=math.inf)  # type: ignore[arg-type]  # it only calls `run`
    return agreement(found, images, checkpoint)


def session(path: Path) -> onnxruntime.InferenceSession:
    """On one core: its CPU time is disturbed least by other processes."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def processor_times(runs: Mapping[str, Callable[[], object]]) -> dict[str, list[float]]:
    """CPU seconds of each run, in turn, so that a change of the machine's speed affects them alike."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run()
    for _ in tqdm(range(ROUNDS), desc="rounds"):
        for name, run in runs.items():
            start = time.process_time()
            run()
            times[name].append(time.process_time() - start)
    return times


class Lean:
    """An engine of one graph."""

    def __init__(self, graph: onnxruntime.InferenceSession) -> None:
        self._session = graph

    def run(self, graph: Graph, images: np.ndarray) -> Outputs:
        return {"logits": self._session.run(["logits"], {"images": images})[0]}


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


def lean(checkpoint: Checkpoint, path: Path, *, change: Callable[[VisionTransformer], None], smooth: bool) -> None:
    """Write the lean graph with the blocks' layers changed."""
    spec = image_spec(checkpoint.preprocessing)
    model = model_for(checkpoint, "int8", lambda: reference_pixels(spec, RANGES)) if smooth else checkpoint.model
    graph = ClassifyGraph(model, checkpoint.preprocessing, precision="fp32")
    change(graph.network)
    onnx.save(trace(graph), path)


def changed(change: Callable[[VisionTransformer], None], *, smooth: bool = True) -> Build:
    return lambda checkpoint, path: lean(checkpoint, path, change=change, smooth=smooth)


def replaced(form: Callable[[Linear], nn.Module], *, among: str = "") -> Callable[[VisionTransformer], None]:
    """Put `form(layer)` in place of each linear layer whose name contains `among`, and int8 in place of the others."""

    def change(network: VisionTransformer) -> None:
        for name, layer in list(network.blocks.named_modules()):
            if isinstance(layer, Linear) and among in name:
                parent, _, last = name.rpartition(".")
                setattr(network.blocks.get_submodule(parent), last, form(layer))
        lower(network, "int8")

    return change


class SeparateBias(nn.Module):
    """The bias outside the product, so that ONNX Runtime fuses it with Gelu."""

    def __init__(self, source: Linear) -> None:
        super().__init__()
        self.product, self.bias = QuantisedLinear(Linear(source.weight, None)), source.bias

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.product(x) + self.bias
        return out


class Rounded(QuantisedLinear):
    """Weights up to `largest` in each output, whatever their neighbours: with 127 products saturate without VNNI."""

    def __init__(self, source: Linear, *, largest: int) -> None:
        super().__init__(source)
        weight = source.weight.detach()
        self.scale = nn.Buffer((weight.abs().amax(0) / largest).clamp(min=SMALLEST_SCALE))
        self.integers = nn.Buffer((weight / self.scale).round().to(torch.int8))


class NBits(nn.Module):
    """Weights of few bits with a scale for each block of inputs, and activations rounded block by block."""

    def __init__(self, source: Linear, *, bits: int, block: int) -> None:
        super().__init__()
        inputs, outputs = source.weight.shape
        self.attributes = {"K": inputs, "N": outputs, "bits": bits, "block_size": block, "accuracy_level": 4}
        blocks = source.weight.detach().T.unflatten(1, (-1, block))  # (out, in / block, block)
        zero = 2 ** (bits - 1)
        self.scale = nn.Buffer(blocks.abs().amax(-1) / (zero - 1))
        integers = ((blocks / self.scale.unsqueeze(-1)).round() + zero).to(torch.uint8)
        self.integers = nn.Buffer(integers if bits == 8 else integers[..., ::2] | integers[..., 1::2] << 4)
        self.bias = source.bias

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = torch.onnx.ops.symbolic(
            "com.microsoft::MatMulNBits",
            (x, self.integers, self.scale, None, None, self.bias),
            {**self.attributes},
            dtype=x.dtype,
            shape=(*x.shape[:-1], self.attributes["N"]),
            version=1,
        )
        return out


class MergedAttention(FusedAttention):
    """Q, K and V from one product of all tokens."""

    def __init__(self, source: FusedAttention) -> None:
        nn.Module.__init__(self)
        self.heads, self.norm, self.proj = source.heads, source.norm, source.proj
        parts = (source.q, source.k, source.v)
        biases: list[Tensor] = [p.bias for p in parts if p.bias is not None]
        weight, bias = torch.cat([p.weight for p in parts], dim=1), torch.cat(biases) if biases else None
        self.qkv = Linear(weight, bias)

    def mixed(self, tokens: Tensor, queries: int | None = None) -> Tensor:
        query, key, value = self.qkv(tokens).chunk(3, dim=-1)
        query = query[:, :queries]
        out: Tensor = torch.onnx.ops.symbolic(
            "com.microsoft::MultiHeadAttention",
            (query, key, value),
            {"num_heads": self.heads},
            dtype=query.dtype,
            shape=query.shape,
            version=1,
        )
        return out


def merged(network: VisionTransformer) -> None:
    for block in network.blocks:
        attention = block.get_submodule("attn")
        assert isinstance(attention, FusedAttention)
        block.add_module("attn", MergedAttention(attention))
    lower(network, "int8")


def fast_gelu(network: VisionTransformer) -> None:
    for block in network.blocks:
        mlp = block.get_submodule("mlp")
        assert isinstance(mlp, Mlp)
        mlp.activation = lambda x: torch.onnx.ops.symbolic(
            "com.microsoft::FastGelu", (x,), dtype=x.dtype, shape=x.shape, version=1
        )
    lower(network, "int8")


def patches_too(network: VisionTransformer) -> None:
    lower(network, "int8")
    patch_embed = network.get_submodule("patch_embed")
    projection = patch_embed.get_submodule("proj")
    assert isinstance(projection, Linear)
    patch_embed.add_module("proj", SeparateBias(projection))  # its bias is a table, positions included


class Calibration(CalibrationDataReader):  # type: ignore[misc]  # onnxruntime carries no types
    def __init__(self, checkpoint: Checkpoint) -> None:
        spec = image_spec(checkpoint.preprocessing)
        self._batches: Iterator[dict[str, np.ndarray]] = (
            {"images": preprocess(image, spec.framing)[0][None]} for image in reference_images(CALIBRATION)
        )

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._batches, None)


def static(checkpoint: Checkpoint, path: Path) -> None:
    """Activation scales fixed on reference images, by ONNX Runtime's own quantiser."""
    plain = path.with_suffix(".fp32.onnx")
    lean(checkpoint, plain, change=lambda network: None, smooth=True)
    proto = onnx.load(plain)
    del proto.graph.value_info[:]
    onnx.save(proto, plain)
    quantize_static(
        plain,
        path,
        Calibration(checkpoint),
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        nodes_to_quantize=[n.name for n in proto.graph.node if n.op_type == "MatMul" and ".blocks." in n.input[1]],
        extra_options={
            "DefaultTensorType": onnx.TensorProto.FLOAT,
            "OpTypesToExcludeOutputQuantization": ["MatMul"],
        },
    )


def given_ranges(checkpoint: Checkpoint, path: Path) -> None:
    """The graph as exported, with the ranges of activations that reference images have."""
    lean(checkpoint, path, change=as_exported, smooth=True)
    proto = onnx.load(path)
    found = [node for node in proto.graph.node if node.op_type == "DynamicQuantizeLinear"]
    ends = {node.input[0]: (0.0, 0.0) for node in found}
    outputs = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in ends]
    proto.graph.output.extend(outputs)
    watched = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    for value in outputs:
        proto.graph.output.remove(value)
    for images in iter(Calibration(checkpoint).get_next, None):
        for name, values in zip(ends, watched.run(list(ends), images), strict=True):
            low, high = ends[name]
            ends[name] = min(low, float(values.min())), max(high, float(values.max()))
    for node in found:
        low, high = ends[node.input[0]]
        scale = max((high - low) / 255, SMALLEST_SCALE)
        constants = {node.output[1]: np.float32(scale), node.output[2]: np.uint8(round(-low / scale))}
        for name, number in constants.items():
            proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array(number), name))
        node.op_type = "QuantizeLinear"
        node.input.extend(constants)
        del node.output[1:]
    onnx.save(proto, path)


def as_exported(network: VisionTransformer) -> None:
    lower(network, "int8")


BUILDS: dict[str, Build] = {
    "fp32": changed(lambda network: None, smooth=False),
    "int8, as exported": changed(as_exported),
    "int8 without smoothing": changed(as_exported, smooth=False),
    "int8, Q K V in one product": changed(merged),
    "int8, bias of fc1 fused with Gelu": changed(replaced(SeparateBias, among="fc1")),
    "int8, FastGelu (tanh)": changed(fast_gelu),
    "int8, patch projection too": changed(patches_too),
    "int8, static (QDQ)": static,
    "int8, given ranges": given_ranges,
    "int8, neighbours not limited": changed(replaced(lambda layer: Rounded(layer, largest=127))),
    "int8, weights in 7 bits": changed(replaced(lambda layer: Rounded(layer, largest=64))),
    "MatMulNBits, 8 bits, blocks of 32": changed(replaced(lambda layer: NBits(layer, bits=8, block=32))),
    "MatMulNBits, 8 bits, blocks of 128": changed(replaced(lambda layer: NBits(layer, bits=8, block=128))),
    "MatMulNBits, 4 bits, blocks of 32": changed(replaced(lambda layer: NBits(layer, bits=4, block=32))),
}
