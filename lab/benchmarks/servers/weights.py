"""One ViT-S/16 with random weights, as each server takes it."""

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import compose
from torch import Tensor, nn

from app.bundle import CLASSIFY_GRAPH, COMBINED_GRAPH, EXPLAIN_GRAPH, MANIFEST, TOKENS_GRAPH, sha256
from export.bundle import write_bundle
from export.combine import combine
from export.onnx_file import externalise, part
from export.patches import factors
from lab.benchmarks.engines import PRECISIONS
from lab.benchmarks.plain_export import NNCF, export_plainly, quantise
from lab.benchmarks.servers.vit import crop, normalise
from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import Checkpoint
from tests.support.pictures import jpeg

OURS, BF16, INT8, PLAIN_BUNDLE = "fp32", "bf16", "int8", "plain"  # bundles; the last has PLAIN for labels
PLAIN, TORCH, TRANSFORMERS, OPENVINO_INT8 = "plain.onnx", "weights.pt", "transformers", "openvino-int8.xml"
PLAIN_WEIGHTS = "plain.bin"
LABELS = "labels.txt"
CALIBRATION = 32  # images


def write_weights(folder: Path) -> None:
    """Write a folder in the format of transformers, and of its weights bundles, the plain export, weights for PyTorch,
    and what NNCF makes of the plain export where it is installed.

    At last, LABELS gets the five likeliest labels of the image that the benchmarks send, one per line.
    """
    _write_transformers(folder / TRANSFORMERS)
    checkpoint = load_checkpoint(folder / TRANSFORMERS)
    for precision in PRECISIONS:
        write_bundle(checkpoint, folder / precision, replace=False, precision=precision)
    _write_lean(folder / INT8)
    export_plainly(checkpoint.model, torch.zeros(2, 3, *checkpoint.config.image_size), folder / PLAIN)
    _write_plain_bundle(folder / OURS, checkpoint, folder / PLAIN_BUNDLE)
    torch.save(checkpoint.model.state_dict(), folder / TORCH)
    if NNCF.exists():  # calibrated on drawn scenes of the kind that is sent
        images = np.stack([normalise(crop(jpeg(seed))) for seed in range(1, 1 + CALIBRATION)])
        quantise(folder / PLAIN, images, folder / OPENVINO_INT8)
    logits = checkpoint.model(torch.from_numpy(normalise(crop(jpeg()))[None]))[0]
    (folder / LABELS).write_text("\n".join(checkpoint.labels[i] for i in logits.topk(5).indices.tolist()))


def _write_lean(bundle: Path) -> None:
    """For other servers, the graph that gives labels alone, from the one that has both."""
    combined = onnx.load(bundle / COMBINED_GRAPH, load_external_data=False)
    branch = _without(_without(combined.graph))  # neither maps nor tokens
    outputs = [onnx.helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, ["images", "classes"])]
    combined.graph.node.clear()
    combined.graph.node.extend(branch.node)
    combined.graph.output.clear()
    combined.graph.output.extend(outputs)
    del combined.graph.input[1:]
    onnx.save(part(combined, ["logits"]), bundle / CLASSIFY_GRAPH)


def _without(graph: onnx.GraphProto) -> onnx.GraphProto:
    (branch,) = (a.g for node in graph.node for a in node.attribute if a.name == "else_branch")
    return branch


def _write_transformers(folder: Path) -> None:
    """The model, and the processor that resizes the shorter side and crops."""
    import transformers

    torch.manual_seed(0)
    config = transformers.ViTConfig(
        hidden_size=384,
        num_hidden_layers=12,
        num_attention_heads=6,
        intermediate_size=1536,
        layer_norm_eps=1e-6,
        id2label={i: f"class {i}" for i in range(1000)},
    )
    transformers.ViTForImageClassification(config).save_pretrained(folder)
    half = [0.5, 0.5, 0.5]
    processor = transformers.CLIPImageProcessorPil(size={"shortest_edge": 256}, image_mean=half, image_std=half)
    processor.save_pretrained(folder)


class _FromPixels(nn.Module):
    """With what the server's graphs have: pixels in, uint8 (B, height, width, 3); logits and embedding out."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__()
        self.model = checkpoint.model
        self.scale, self.shift = (nn.Buffer(each.float()) for each in factors(checkpoint.preprocessing))

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        tokens = self.model.encode((images * self.scale + self.shift).permute(0, 3, 1, 2))
        return self.model.classify(tokens), self.model.embedding(tokens)


def _write_plain_bundle(bundle: Path, checkpoint: Checkpoint, out: Path) -> None:
    """Copy `bundle` to `out`, with a plain export of its model for labels: this server without this project's graph."""
    shutil.copytree(bundle, out)
    pixels = torch.zeros(2, *checkpoint.config.image_size, 3, dtype=torch.uint8)
    plain = out.parent / "plain-from-pixels.onnx"
    export_plainly(_FromPixels(checkpoint), pixels, plain, outputs=("logits", "embedding"))
    labels = onnx.load(plain)
    externalise(labels, out / PLAIN_WEIGHTS)
    onnx.save(labels, out / CLASSIFY_GRAPH)
    explain, tokens = (onnx.load(out / name, load_external_data=False) for name in (EXPLAIN_GRAPH, TOKENS_GRAPH))
    explain, tokens = (  # initialisers of one name are the same
        compose.add_prefix(graph, "explaining_", rename_inputs=False, rename_value_infos=False)
        for graph in (explain, tokens)
    )
    onnx.save(combine(labels, explain, tokens), out / COMBINED_GRAPH)
    manifest = json.loads((out / MANIFEST).read_text())
    manifest["files"] |= {file: sha256(out / file) for file in (CLASSIFY_GRAPH, COMBINED_GRAPH, PLAIN_WEIGHTS)}
    (out / MANIFEST).write_text(json.dumps(manifest, indent=2))
