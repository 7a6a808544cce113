"""One ViT-S/16 with random weights, as each server takes it."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from export.bundle import write_bundle
from model.checkpoints.checkpoint import Checkpoint
from model.vit import VisionTransformer
from tests.benchmarks.engines import PRECISIONS
from tests.benchmarks.pictures import jpeg
from tests.benchmarks.plain_export import NNCF, export_plainly, quantise
from tests.benchmarks.random_model import random_checkpoint
from tests.benchmarks.servers.plain_bundle import write_plain_bundle
from tests.benchmarks.servers.vit import crop, normalise

OURS, BF16, INT8, PLAIN_BUNDLE = "fp32", "bf16", "int8", "plain"  # bundles; the last has PLAIN for labels
PLAIN, TORCH, TRANSFORMERS, OPENVINO_INT8 = "plain.onnx", "weights.pt", "transformers", "openvino-int8.xml"
LABELS = "labels.txt"
CALIBRATION = 32  # images
IN_TRANSFORMERS = {  # layers of a block, by the names of version 4, which every version reads
    "norm1": ("layernorm_before",),
    "attn.qkv": ("attention.attention.query", "attention.attention.key", "attention.attention.value"),
    "attn.proj": ("attention.output.dense",),
    "norm2": ("layernorm_after",),
    "mlp.fc1": ("intermediate.dense",),
    "mlp.fc2": ("output.dense",),
}


def write_weights(folder: Path) -> None:
    """Write bundles, the plain export, weights for PyTorch, a folder in the format of transformers, and what NNCF
    makes of the plain export where it is installed.

    At last, LABELS gets the five likeliest labels of the image that the benchmarks send, one per line.
    """
    checkpoint = random_checkpoint("S/16")
    # transformers rounds the position of the crop down, so all servers do
    checkpoint = replace(checkpoint, preprocessing=replace(checkpoint.preprocessing, crop_rounding="floor"))
    for precision in PRECISIONS:
        write_bundle(checkpoint, folder / precision, replace=False, precision=precision)
    export_plainly(checkpoint.model, folder / PLAIN)
    write_plain_bundle(folder / OURS, folder / PLAIN, checkpoint.preprocessing, folder / PLAIN_BUNDLE)
    torch.save(checkpoint.model.state_dict(), folder / TORCH)
    _write_transformers(checkpoint, folder / TRANSFORMERS)
    if NNCF.exists():  # calibrated on drawn scenes of the kind that is sent
        images = np.stack([normalise(crop(jpeg(seed))) for seed in range(1, 1 + CALIBRATION)])
        quantise(folder / PLAIN, images, folder / OPENVINO_INT8)
    logits = checkpoint.model(torch.from_numpy(normalise(crop(jpeg()))[None]))[0]
    (folder / LABELS).write_text("\n".join(checkpoint.labels[i] for i in logits.topk(5).indices.tolist()))


def _write_transformers(checkpoint: Checkpoint, folder: Path) -> None:
    folder.mkdir()
    config, preprocessing = checkpoint.config, checkpoint.preprocessing
    stated = {
        "architectures": ["ViTForImageClassification"],
        "model_type": "vit",
        "hidden_size": config.width,
        "num_hidden_layers": config.depth,
        "num_attention_heads": config.heads,
        "intermediate_size": config.mlp_dim,
        "layer_norm_eps": config.norm_eps,
        "id2label": dict(enumerate(checkpoint.labels)),
        "label2id": {label: i for i, label in enumerate(checkpoint.labels)},
    }
    processor = {
        "image_processor_type": "CLIPImageProcessor",  # the one that resizes the shorter side and crops
        "size": {"shortest_edge": preprocessing.resize_size[0]},
        "crop_size": {"height": preprocessing.size[0], "width": preprocessing.size[1]},
        "resample": 3,  # bicubic
        "image_mean": preprocessing.mean,
        "image_std": preprocessing.std,
    }
    (folder / "config.json").write_text(json.dumps(stated))
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    save_file(_named_as_transformers(checkpoint.model), folder / "model.safetensors", metadata={"format": "pt"})


def _named_as_transformers(model: VisionTransformer) -> dict[str, Tensor]:
    """The class token has a position there: zero."""
    ours = model.state_dict()
    positions = torch.nn.functional.pad(ours["pos_embed"], (0, 0, 1, 0))
    theirs = {"vit.embeddings.cls_token": ours["cls_token"], "vit.embeddings.position_embeddings": positions}
    for kind in ("weight", "bias"):
        theirs[f"vit.embeddings.patch_embeddings.projection.{kind}"] = ours[f"patch_embed.proj.{kind}"]
        theirs[f"vit.layernorm.{kind}"] = ours[f"norm.{kind}"]
        theirs[f"classifier.{kind}"] = ours[f"head.{kind}"]
        for i, (name, parts) in product(range(model.config.depth), IN_TRANSFORMERS.items()):
            tensors = ours[f"blocks.{i}.{name}.{kind}"].chunk(len(parts))
            theirs |= {f"vit.encoder.layer.{i}.{part}.{kind}": of for part, of in zip(parts, tensors, strict=True)}
    return {name: tensor.contiguous() for name, tensor in theirs.items()}
