"""Small files in the real formats of the libraries, with as many classes as published checkpoints have.

They are the golden checkpoints with another head. Each function returns one that writes a file of so many classes.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from tests.golden.test_checkpoints import overrides_of
from tests.support.altered import GOLDEN, State, altered, with_more

Write = Callable[[Path, int], Path]


def torch_file(case: str, head: str) -> Write:
    def write(folder: Path, classes: int) -> Path:
        return altered(case, folder, tensors=lambda state: state | ones(head, classes, len(state[f"{head}.weight"][0])))

    return write


def ones(head: str, classes: int, features: int) -> dict[str, Tensor]:
    return {f"{head}.weight": torch.ones(classes, features), f"{head}.bias": torch.ones(classes)}


def backbone_and_head(case: str, head: str, *, prefix: str = "") -> Write:
    """facebookresearch's DINO and DINOv2: two files in a folder."""

    def write(folder: Path, classes: int) -> Path:
        files = altered(case, folder)
        content = torch.load(files / head, weights_only=True)
        state = content.get("state_dict", content)
        features = state[f"{prefix}weight"].shape[1]
        state |= {f"{prefix}weight": torch.ones(classes, features), f"{prefix}bias": torch.ones(classes)}
        torch.save(content, files / head)
        return files

    return write


def google_file(folder: Path, classes: int) -> Path:
    def with_head(arrays: State) -> State:
        kernel = np.ones((arrays["head/kernel"].shape[0], classes), np.float32)
        return arrays | {"head/kernel": kernel, "head/bias": np.ones(classes, np.float32)}

    return altered("google-vit-jax", folder, tensors=with_head)


def hub_folder(case: str, **config: Any) -> Write:
    """Of Hugging Face or timm. Without `id2label` in `config`, labels are those that transformers makes up."""

    def write(folder: Path, classes: int) -> Path:
        made_up = {str(i): f"LABEL_{i}" for i in range(classes)}
        keys = {"id2label": made_up, "label_names": None, "num_classes": classes, **config}
        head = "classifier" if case.startswith("huggingface") else "head"
        return altered(case, folder, tensors=with_more(ones(head, classes, 24)), **keys)

    return write


def training_file(arch: str) -> Write:
    """What timm's train.py saves, with a moving average of the weights: utils/checkpoint_saver.py."""

    def write(folder: Path, classes: int) -> Path:
        state = load_file(GOLDEN / "timm-plain/model.safetensors")
        state |= ones("head", classes, 24)
        content = {"epoch": 299, "arch": arch, "args": argparse.Namespace(model=arch, img_size=None)}
        torch.save({**content, "state_dict": state, "state_dict_ema": state}, folder / "model_best.pth.tar")
        return folder / "model_best.pth.tar"

    return write


def stated(case: str) -> dict[str, str]:
    """Facts that the files of a case do not contain, for --set."""
    return overrides_of(GOLDEN / case)
