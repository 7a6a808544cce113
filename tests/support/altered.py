"""Golden checkpoints with changes: functions of their tensors, and a folder of a hub with other facts in its JSON."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor

GOLDEN = Path("tests/golden/checkpoints")
State = dict[str, Tensor]
Change = Callable[[State], State]


def renamed(old: str, new: str) -> Change:
    return lambda state: {name.replace(old, new): tensor for name, tensor in state.items()}


def without(part: str) -> Change:
    return lambda state: {name: tensor for name, tensor in state.items() if part not in name}


def with_more(**more: Tensor) -> Change:
    """Dots of names are written as two underscores."""
    return lambda state: {**state, **{name.replace("__", "."): tensor for name, tensor in more.items()}}


def altered_folder(
    case: str, folder: Path, *, tensors: Change = dict, tower: dict[str, Any] | None = None, **keys: Any
) -> Path:
    """A copy of a case of Hugging Face in `folder`, with keys of its config.json replaced, or dropped where None.

    `tower` are keys of the image tower's part of config.json.
    """
    copy = folder / case
    shutil.copytree(GOLDEN / f"huggingface-{case}", copy)
    config = {**json.loads((copy / "config.json").read_text()), **keys}
    if tower:
        config["vision_config"] = {**config["vision_config"], **tower}
    (copy / "config.json").write_text(json.dumps({key: value for key, value in config.items() if value is not None}))
    if (weights := copy / "model.safetensors").exists():
        save_file(tensors(load_file(weights)), weights)
    return copy
