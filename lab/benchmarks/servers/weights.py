"""One ViT-S/16 with random weights, as each server takes it."""

from pathlib import Path

import numpy as np
import onnx
import torch

from app.bundle import CLASSIFY_GRAPH, COMBINED_GRAPH
from export.bundle import write_bundle
from export.onnx_file import part
from lab.benchmarks.engines import PRECISIONS
from lab.benchmarks.plain_export import NNCF, export_plainly, quantise
from lab.benchmarks.servers.vit import crop, normalise
from model.checkpoints import load_checkpoint
from tests.support.pictures import jpeg

OURS, BF16, INT8 = "fp32", "bf16", "int8"  # bundles
PLAIN, TRANSFORMERS, OPENVINO_INT8 = "plain.onnx", "transformers", "openvino-int8.xml"
LABELS = "labels.txt"
CALIBRATION = 32  # images


def write_weights(folder: Path) -> None:
    """Write a folder in the format of transformers, and of its weights bundles, the plain export, and what NNCF makes
    of that where it is installed.

    At last, LABELS gets the five likeliest labels of the image that the benchmarks send, one per line.
    """
    _write_transformers(folder / TRANSFORMERS)
    checkpoint = load_checkpoint(folder / TRANSFORMERS)
    for precision in PRECISIONS:
        write_bundle(checkpoint, folder / precision, replace=False, precision=precision)
    _write_lean(folder / INT8)
    export_plainly(checkpoint.model, torch.zeros(2, 3, *checkpoint.config.image_size), folder / PLAIN)
    if NNCF.exists():  # calibrated on drawn scenes of the kind that is sent
        images = np.stack([normalise(crop(jpeg(seed))) for seed in range(1, 1 + CALIBRATION)])
        quantise(folder / PLAIN, images, folder / OPENVINO_INT8)
    logits = checkpoint.model(torch.from_numpy(normalise(crop(jpeg()))[None]))[0]
    (folder / LABELS).write_text("\n".join(checkpoint.labels[i] for i in logits.topk(5).indices.tolist()))


def _write_lean(bundle: Path) -> None:
    """For other servers, the graph that gives labels alone, from the one that has both."""
    combined = onnx.load(bundle / COMBINED_GRAPH, load_external_data=False)
    (branch,) = (a.g for node in combined.graph.node for a in node.attribute if a.name == "else_branch")
    outputs = [onnx.helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, ["images", "classes"])]
    combined.graph.node.clear()
    combined.graph.node.extend(branch.node)
    combined.graph.output.clear()
    combined.graph.output.extend(outputs)
    del combined.graph.input[1:]
    onnx.save(part(combined, ["logits"]), bundle / CLASSIFY_GRAPH)


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
