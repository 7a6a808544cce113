"""A checkpoint on disk: the tensors of its files, and the JSON files beside them."""

import re
from collections.abc import Collection
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.weights import open_weights, read_json

# The names that hubs give to weights; a folder's or a repository's are the first that it has.
WEIGHT_FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "open_clip_model.safetensors",
    "pytorch_model.bin",
    "open_clip_pytorch_model.bin",
)
SHARDS = {"model.safetensors.index.json": ["model-?????-of-?????.safetensors"]}  # patterns of the files that it lists
LONE_FILES = (".safetensors", ".pth", ".pt", ".pth.tar")  # suffixes in a folder without any of those names


class Source:
    """Tensors by name. It records which of them are taken, so that no tensor is dropped silently."""

    def __init__(self, path: Path, *, name: str | None = None) -> None:
        """`path` is a weights file, or a folder with one or with a backbone and its head.

        Raises CheckpointError for anything else.
        """
        self.file, *others = _weights_files(path)
        self.name = name or (path.resolve().name if path.is_dir() else Path(path.name.removesuffix(".tar")).stem)
        self.folder = self.file.parent
        opened = open_weights(self.file)
        self.metadata, self.wrappers, self.chosen = opened.metadata, opened.wrappers, opened.chosen
        self.architecture, self.arguments = opened.architecture, opened.arguments
        self._shapes, self._read = dict(opened.shapes), dict.fromkeys(opened.shapes, opened.read)
        for other in others:
            self._add(other)
        self.used: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self._shapes

    @property
    def names(self) -> Collection[str]:
        return self._shapes.keys()

    def shape(self, key: str) -> tuple[int, ...]:
        """Known without reading the tensor."""
        if key not in self._shapes:
            raise CheckpointError(f"{self.file.name} has no {key}")
        return self._shapes[key]

    def take(self, key: str) -> Tensor:
        """The tensor, as float32 if it is a floating-point tensor. Raises CheckpointError if there is none."""
        self.shape(key)
        self.used.add(key)
        tensor = self._read[key](key)
        return tensor.float() if tensor.is_floating_point() else tensor

    def ignore(self, pattern: str) -> None:
        """Declare the tensors whose whole name matches as known and not needed."""
        self.used.update(key for key in self._shapes if re.fullmatch(pattern, key))

    @property
    def unused(self) -> list[str]:
        return sorted(self._shapes.keys() - self.used)

    def count(self, pattern: str) -> int:
        """One more than the largest number that the pattern's group matches; 0 when nothing does."""
        matches = (re.match(pattern, key) for key in self._shapes)
        return max((int(match[1]) + 1 for match in matches if match), default=0)

    @cached_property
    def config(self) -> dict[str, Any]:
        """The content of config.json, empty if there is none."""
        return self.json("config.json")

    def json(self, name: str) -> dict[str, Any]:
        """The content of a JSON file beside the weights, empty if there is none. Raises CheckpointError if broken."""
        path = self.folder / name
        return read_json(path) if path.is_file() else {}

    def _add(self, file: Path) -> None:
        """Add the tensors of another file. Raises CheckpointError for a name that both files have."""
        other = open_weights(file)
        if twice := sorted(self._shapes.keys() & other.shapes.keys()):
            raise CheckpointError(f"{self.file.name} and {file.name} both have {twice[0]}: name the file to load")
        self._shapes |= other.shapes
        self._read |= dict.fromkeys(other.shapes, other.read)


def _weights_files(path: Path) -> list[Path]:
    """A file itself; in a folder the file with a hub's name, else the only one or two, the larger first."""
    if path.is_file():
        return [path]
    for name in WEIGHT_FILES:
        if (path / name).is_file():
            return [path / name]
    if not path.exists():
        raise CheckpointError(f"{path} does not exist")
    files = [file for file in path.iterdir() if file.name.endswith(LONE_FILES)]
    if not files:
        raise CheckpointError(f"{path} has no weights, such as model.safetensors or a file that ends in .pth or .pt")
    if len(files) > 2:
        raise CheckpointError(f"{path} has {len(files)} files with weights: name one, such as {min(files)}")
    return sorted(files, key=lambda file: file.stat().st_size, reverse=True)
