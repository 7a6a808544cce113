"""Golden checkpoints with changes: of their tensors, and of the JSON beside them."""

import json
import shutil
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from tests.golden.test_checkpoints import path_of

GOLDEN = Path("tests/golden/checkpoints")
CONFIGS = ("config.json", "open_clip_config.json")
WEIGHTS = (".safetensors", ".npz", ".pth", ".pt", ".bin")
State = dict[str, Any]
Change = Callable[[State], State]


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
