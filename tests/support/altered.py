"""Golden checkpoints with changes: of their tensors, of the JSON beside them, or with another head."""

import argparse
import json
import shutil
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.load import describe_checkpoint
from tests.golden.test_checkpoints import overrides_of, path_of

GOLDEN = Path("tests/golden/checkpoints")
CONFIGS = ("config.json", "open_clip_config.json")
WEIGHTS = (".safetensors", ".npz", ".pth", ".pt", ".bin")
WIDTH = 24  # of the networks that get another head
NOT_GIVEN = {"img_size": None, "mean": None, "std": None, "crop_pct": None, "interpolation": "", "aa": None}
State = dict[str, Any]
Change = Callable[[State], State]
Write = Callable[[Path, int], Path]  # of a small file in a library's real format, with so many classes


def renamed(old: str, new: str) -> Change:
    return lambda state: {name.replace(old, new): tensor for name, tensor in state.items()}


def without(part: str) -> Change:
    return lambda state: {name: tensor for name, tensor in state.items() if part not in name}


def with_more(more: State) -> Change:
    return lambda state: state | more


def altered(case: str, folder: Path, *, tensors: Change | None = None, **keys: Any) -> Path:
    """A copy of a case in `folder`: its own folder, or its lone file.

    `keys` of its configuration are replaced, or dropped where None; one in a part of it has the part's name and a dot
    before its own.
    """
    copy = folder / case
    shutil.copytree(GOLDEN / case, copy)
    for config in filter(Path.exists, (copy / name for name in CONFIGS)):
        content = json.loads(config.read_text())
        for key, value in keys.items():
            *parents, last = key.split(".")
            part = reduce(dict.__getitem__, parents, content)
            part[last] = value
            if value is None:
                del part[last]
        config.write_text(json.dumps(content))
    if tensors is not None:
        _rewrite(next(file for file in copy.iterdir() if file.suffix in WEIGHTS and file.stem != "expected"), tensors)
    return path_of(copy)


def outcome_of(path: Path) -> Any:
    """The network, the grid and the pixels of a checkpoint, or the sentence that refuses it."""
    try:
        description = describe_checkpoint(path)
    except CheckpointError as refusal:
        return str(refusal)
    return description.config, description.grid, description.preprocessing


def _rewrite(weights: Path, change: Change) -> None:
    if weights.suffix == ".npz":
        with np.load(weights, allow_pickle=True) as arrays:
            changed = change(dict(arrays))
        np.savez(weights, **changed)
    elif weights.suffix == ".safetensors":
        save_file(change(load_file(weights)), weights)
    else:
        content = torch.load(weights, weights_only=True)
        torch.save({"model": change(content["model"])} if "model" in content else change(content), weights)


def ones(head: str, classes: int) -> dict[str, Tensor]:
    return {f"{head}.weight": torch.ones(classes, WIDTH), f"{head}.bias": torch.ones(classes)}


def torch_file(case: str, head: str) -> Write:
    return lambda folder, classes: altered(case, folder, tensors=with_more(ones(head, classes)))


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
        transformers = case.startswith("huggingface")
        keys = {"id2label": made_up}
        if not transformers:
            keys = {"label_names": None, "num_classes": classes, "model_args.num_classes": classes}
        head = "classifier" if transformers else "head"
        return altered(case, folder, tensors=with_more(ones(head, classes)), **{**keys, **config})

    return write


def training_run(
    folder: Path, arch: str, state: State, *, kind: Callable[..., Any] = argparse.Namespace, **arguments: Any
) -> Path:
    """What timm's train.py saves, with `state` as the moving average: utils/checkpoint_saver.py."""
    content = {"epoch": 9, "arch": arch, "optimizer": {"state": {0: {"step": torch.tensor(7.0)}}}, "metric": 71.2}
    content["args"] = kind(**NOT_GIVEN | {"model": arch} | arguments)
    worse = {key: tensor + 1 for key, tensor in state.items()}
    torch.save({**content, "state_dict": worse, "state_dict_ema": state}, folder / "model_best.pth.tar")
    return folder / "model_best.pth.tar"


def training_file(arch: str) -> Write:
    plain = load_file(GOLDEN / "timm-plain/model.safetensors")
    return lambda folder, classes: training_run(folder, arch, plain | ones("head", classes))


def stated(case: str) -> dict[str, str]:
    """Facts that the files of a case do not contain, for --set."""
    return overrides_of(GOLDEN / case)
