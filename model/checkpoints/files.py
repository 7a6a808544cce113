"""Which files of a folder are its weights, and the JSON files beside them. Without torch."""

import json
import os
import re
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from model.checkpoints import foreign
from model.checkpoints.checkpoint import CheckpointError, first_few

# The names that hubs give to weights; a folder's or a repository's are the first that it has.
WEIGHT_FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "open_clip_model.safetensors",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
    "open_clip_pytorch_model.bin",
)
SHARDS = {  # patterns of the files that it lists
    "model.safetensors.index.json": ["model-?????-of-?????.safetensors"],
    "pytorch_model.bin.index.json": ["pytorch_model-?????-of-?????.bin"],
}
LONE_FILES = (".safetensors", ".pth", ".pt", ".pth.tar", ".ckpt", ".bin")  # suffixes in a folder without those names
# What trainers and other programs call files of such suffixes that are not weights of a network.
NO_WEIGHTS = re.compile(r"(training_args|optimizer|scheduler|scaler|rng_state.*|random_states.*)\.\w+")
LARGEST_JSON = 2**26  # bytes; the names of 22,000 classes take a hundredth of it
ADAPTER = "adapter_config.json"
DEEPEST, MOST_SEEN, MOST_NAMED = 3, 2000, 4  # folders below one, as lightning_logs/version_0/checkpoints


def weights_files(path: Path) -> list[Path]:
    """A file itself; in a folder the file with a hub's name, else the only one or two, the larger first.

    Raises CheckpointError where there is none, or more.
    """
    if path.is_file():
        return [path]
    if (path / ADAPTER).is_file():  # transformers loads it, whatever is beside it
        raise CheckpointError(foreign.of_names(str(path), [ADAPTER]))
    for name in WEIGHT_FILES:
        if (path / name).is_file():
            return [path / name]
    if not path.exists():
        raise CheckpointError(f"{path} does not exist: give a file, a folder, or hf://org/name of the Hugging Face Hub")
    if not path.is_dir():  # opening a FIFO would never end
        raise CheckpointError(f"{path} is neither a file nor a folder")
    if (path / "manifest.json").is_file():
        raise CheckpointError(f"{path} is a bundle, so it is exported already: vit-serve serve --bundle {path}")
    files = [file for file in path.iterdir() if may_hold_weights(file.name) and file.is_file()]
    if not files:
        raise CheckpointError(_without_weights(path))
    if len(files) > 2:
        raise CheckpointError(f"{path} has {len(files)} files with weights: name one, such as {min(files)}")
    return sorted(files, key=lambda file: file.stat().st_size, reverse=True)


def may_hold_weights(file: str) -> bool:
    """Whether a file without one of the names of hubs may be the weights of its folder."""
    return file.endswith(LONE_FILES) and not NO_WEIGHTS.fullmatch(file) and not foreign.is_named(file)


def read_json(path: Path) -> dict[str, Any]:
    """Raises CheckpointError unless it is a JSON object."""
    try:
        if path.stat().st_size > LARGEST_JSON:
            raise CheckpointError(f"{path.name} has more than {LARGEST_JSON:,} bytes, too many for JSON beside weights")
        content = json.loads(path.read_text("utf-8-sig"))  # editors on Windows write its mark
    except RecursionError:
        raise CheckpointError(f"{path.name} has too many brackets in one another") from None
    except (ValueError, OSError):
        content = None
    if not isinstance(content, dict):
        raise CheckpointError(f"{path.name} is not a JSON object")
    return content


def read_beside(folder: Path, name: str) -> dict[str, Any]:
    """The content of a JSON file in a folder, empty if there is none. Raises CheckpointError if broken."""
    path = folder / name
    return read_json(path) if path.is_file() else {}


def _without_weights(folder: Path) -> str:
    """What a folder without weights has in their place."""
    inside = [*folder.iterdir()]
    return (
        foreign.of_names(str(folder.parent), [folder.name])
        or foreign.of_names(str(folder), [path.name for path in inside])
        or _below(folder)
        or foreign.of_names(str(folder), _names_in(folder, inside))
        or f"{folder} has no weights, such as model.safetensors or a file that ends in .pth or .pt"
        + (f". It has {first_few(sorted(path.name for path in inside))}" if inside else ": it is empty")
    )


def _below(folder: Path) -> str:
    """A sentence on the folders below one that have weights, or empty."""
    found: list[str] = []
    for place, folders, files in islice(os.walk(folder), MOST_SEEN):
        if len(Path(place).relative_to(folder).parts) >= DEEPEST:
            folders.clear()
        if any(file in WEIGHT_FILES or may_hold_weights(file) for file in files):
            found.append(place)
    some = first_few(sorted(found), most=MOST_NAMED)
    return f"{folder} has no weights of its own: give a folder below it, such as {some}" if found else ""


def _names_in(folder: Path, inside: Iterable[Path]) -> list[str]:
    """Files and folders in folders that a folder has, with / between."""
    deeper = (part for place in inside if place.is_dir() for part in islice(place.iterdir(), MOST_SEEN))
    return [path.relative_to(folder).as_posix() for path in deeper]
