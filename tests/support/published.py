"""Small files in the real formats of the libraries, with as many classes as published checkpoints have.

They are the golden checkpoints with another head. Each function returns one that writes a file of so many classes.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from tests.golden.test_checkpoints import path_of

GOLDEN = Path("tests/golden/checkpoints")
Write = Callable[[Path, int], Path]


def torch_file(case: str, head: str) -> Write:
    def write(folder: Path, classes: int) -> Path:
        content = torch.load(path_of(GOLDEN / case), weights_only=True)
        state = content.get("model", content)
        state[f"{head}.weight"] = torch.ones(classes, state[f"{head}.weight"].shape[1])
        state[f"{head}.bias"] = torch.ones(classes)
        torch.save(content, folder / "x.pth")
        return folder / "x.pth"

    return write


def backbone_and_head(case: str, backbone: str, head: str, *, prefix: str = "") -> Write:
    """facebookresearch's DINO and DINOv2: two files in a folder."""

    def write(folder: Path, classes: int) -> Path:
        files = path_of(GOLDEN / case)
        torch.save(torch.load(files / backbone, weights_only=True), folder / backbone)
        content = torch.load(files / head, weights_only=True)
        state = content.get("state_dict", content)
        state[f"{prefix}weight"] = torch.ones(classes, state[f"{prefix}weight"].shape[1])
        state[f"{prefix}bias"] = torch.ones(classes)
        torch.save(content, folder / head)
        return folder

    return write


def google_file(folder: Path, classes: int) -> Path:
    with np.load(GOLDEN / "google-vit-jax/checkpoint.npz") as archive:
        arrays = dict(archive)
    arrays["head/kernel"] = np.ones((arrays["head/kernel"].shape[0], classes), np.float32)
    np.savez(folder / "x.npz", **arrays | {"head/bias": np.ones(classes, np.float32)})
    return folder / "x.npz"


def hub_folder(case: str, **config: Any) -> Write:
    """Of Hugging Face or timm. Without `id2label` in `config`, labels are those that transformers makes up."""

    def write(folder: Path, classes: int) -> Path:
        names = {
            "id2label": {str(i): f"LABEL_{i}" for i in range(classes)},
            "label_names": None,
            "num_classes": classes,
        }
        state = load_file(GOLDEN / case / "model.safetensors")
        head = "head" if "head.weight" in state else "classifier"
        state |= {f"{head}.weight": torch.ones(classes, 24), f"{head}.bias": torch.ones(classes)}
        save_file(state, folder / "model.safetensors")
        for name in ("config.json", "preprocessor_config.json"):
            if (GOLDEN / case / name).exists():
                content = json.loads((GOLDEN / case / name).read_text())
                if name == "config.json":
                    content |= names | config
                (folder / name).write_text(json.dumps(content))
        return folder

    return write


def training_file(arch: str) -> Write:
    """What timm's train.py saves, with a moving average of the weights: utils/checkpoint_saver.py."""

    def write(folder: Path, classes: int) -> Path:
        state = load_file(GOLDEN / "timm-plain/model.safetensors")
        state |= {"head.weight": torch.ones(classes, 24), "head.bias": torch.ones(classes)}
        content = {"epoch": 299, "arch": arch, "args": argparse.Namespace(model=arch, img_size=None)}
        torch.save({**content, "state_dict": state, "state_dict_ema": state}, folder / "model_best.pth.tar")
        return folder / "model_best.pth.tar"

    return write


def stated(case: str) -> dict[str, str]:
    """Facts that the files of a case do not contain, for --set."""
    path = GOLDEN / case / "overrides.json"
    return json.loads(path.read_text()) if path.exists() else {}
