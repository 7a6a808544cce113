"""Small files of timm: a network as timm's arguments describe it, its tensors, and config.json."""

import json
from pathlib import Path
from typing import Any

import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor

from model.checkpoints import load_checkpoint
from model.checkpoints.families.timm_architectures import find
from model.checkpoints.families.timm_arguments import with_arguments
from model.checkpoints.families.timm_layers import slots
from model.checkpoints.families.timm_network import network
from tests.support.toy import toy_model

PLAIN = "vit_base_patch16_224"
SMALL = {"embed_dim": 24, "depth": 2, "num_heads": 3, "patch_size": 8, "img_size": 32}
RECIPE = {"input_size": [3, 32, 32], "crop_pct": 0.9, "interpolation": "bicubic", "mean": [0.4] * 3, "std": [0.2] * 3}
SIZES = {name: str(SMALL[name]) for name in ("embed_dim", "depth", "num_heads", "patch_size")}


def toy(architecture: str, *, num_classes: int = 5, image_size: tuple[int, int] = (32, 32), **arguments: Any):
    """A network as timm's arguments describe it, and its tensors as timm has them, most of them under our names."""
    entry, _ = find(architecture)
    entry = with_arguments(entry, SMALL | arguments)
    config = network(entry, image_size=image_size, num_classes=num_classes)
    model = toy_model(config)
    state = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    if "pos_embed" in state:  # ours has the patches alone
        state["pos_embed"] = F.pad(state["pos_embed"], (0, 0, slots(entry, config), 0))
    return model, state


def write(folder: Path, state: dict[str, Tensor], config: dict[str, Any] | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    save_file(state, folder / "model.safetensors")
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    return folder


def config_of(architecture: str, *, model_args: Any = (), recipe: Any = (), **root: Any):
    stated = {"model_args": SMALL | dict(model_args), "pretrained_cfg": RECIPE | dict(recipe)}
    return {"architecture": architecture, **stated, **root}


def load(folder: Path, state: dict[str, Tensor], architecture: str, **config: Any):
    return load_checkpoint(write(folder, state, config_of(architecture, **config)))
