"""One ViT-S/16 with random weights, as each server takes it."""

import json
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from export.bundle import write_bundle
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.families.huggingface import BLOCK
from model.vit import VisionTransformer
from tests.benchmarks.pictures import jpeg
from tests.benchmarks.plain_export import export_plainly
from tests.benchmarks.random_model import random_checkpoint
from tests.benchmarks.servers.vit import decode


def write_weights(folder: Path) -> None:
    """Bundles in fp32 and int8; plain.onnx and weights.pt of the model in PyTorch; a folder as transformers has it.

    And label.txt, the label that is right for the picture of the benchmarks.
    """
    checkpoint = random_checkpoint("S/16")
    # transformers rounds the place of the crop down, so all do.
    checkpoint = replace(checkpoint, preprocessing=replace(checkpoint.preprocessing, crop_rounding="floor"))
    write_bundle(checkpoint, folder / "fp32", replace=False)
    write_bundle(checkpoint, folder / "int8", replace=False, precision="int8")
    export_plainly(checkpoint.model, folder / "plain.onnx")
    torch.save(checkpoint.model.state_dict(), folder / "weights.pt")
    _write_transformers(checkpoint, folder / "transformers")
    logits = checkpoint.model(torch.from_numpy(decode(jpeg())[None]))
    (folder / "label.txt").write_text(checkpoint.labels[int(logits.argmax())])


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
    tensors = {name: tensor.contiguous() for name, tensor in _named_as_transformers(checkpoint.model)}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def _named_as_transformers(model: VisionTransformer) -> list[tuple[str, Tensor]]:
    """The names of version 4, which every version reads. The class token has a position there: zero."""
    ours = model.state_dict()
    positions = torch.nn.functional.pad(ours["pos_embed"], (0, 0, 1, 0))
    theirs = [("vit.embeddings.cls_token", ours["cls_token"]), ("vit.embeddings.position_embeddings", positions)]
    for kind in ("weight", "bias"):
        theirs += [
            (f"vit.embeddings.patch_embeddings.projection.{kind}", ours[f"patch_embed.proj.{kind}"]),
            (f"vit.layernorm.{kind}", ours[f"norm.{kind}"]),
            (f"classifier.{kind}", ours[f"head.{kind}"]),
        ]
        for i in range(model.config.depth):
            for name, (first, *_) in BLOCK.items():
                parts = first.split()
                for part, tensor in zip(parts, ours[f"blocks.{i}.{name}.{kind}"].chunk(len(parts)), strict=True):
                    theirs.append((f"vit.encoder.layer.{i}.{part}.{kind}", tensor))
    return theirs
