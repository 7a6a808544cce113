"""A checkpoint on disk: the tensors of its files, and the JSON files beside them."""

import re
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from model.checkpoints import foreign, places
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.tensors import first_few
from model.checkpoints.weights import Stored, open_weights, read_beside

# The names that hubs give to weights; a folder's or a repository's are the first that it has.
WEIGHT_FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "open_clip_model.safetensors",
    "pytorch_model.bin",
    "open_clip_pytorch_model.bin",
)
SHARDS = {"model.safetensors.index.json": ["model-?????-of-?????.safetensors"]}  # patterns of the files that it lists
ADAPTER = "adapter_config.json"
LONE_FILES = (".safetensors", ".pth", ".pt", ".pth.tar", ".ckpt")  # suffixes in a folder without any of those names


# Regular expressions and what takes the place of each match, one after the other: names of a library to our own.
Names = Sequence[tuple[str, str | Callable[[re.Match[str]], str]]]


class Source:
    """Tensors by name. What is known without reading them is their shapes."""

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
        self.names_in_file: dict[str, str] = {}  # of tensors that were renamed, by their new names; messages use them
        self._stored = opened.tensors
        for other in others:
            self._add(other)

    def __contains__(self, name: str) -> bool:
        return name in self._stored

    @property
    def names(self) -> Collection[str]:
        return self._stored.keys()

    def shape(self, name: str) -> tuple[int, ...]:
        """Raises CheckpointError if there is no such tensor."""
        if name not in self._stored:
            raise CheckpointError(f"{self.file.name} has no {name}")
        return self._stored[name].shape

    def rename(self, names: Names = (), *, dropping: str = "(?!)") -> None:
        """Give all tensors other names, and drop those whose whole name matches `dropping`.

        Raises CheckpointError if two tensors get one name.
        """
        renamed: dict[str, Stored] = {}
        names_in_file: dict[str, str] = {}
        for theirs, stored in self._stored.items():
            if re.fullmatch(dropping, theirs):
                continue
            ours = theirs
            for pattern, replacement in names:
                ours = re.sub(pattern, replacement, ours)
            if ours in renamed:
                raise CheckpointError(f"{self.file.name} has {theirs} and another tensor that is {ours} too")
            renamed[ours] = stored
            names_in_file[ours] = self.names_in_file.get(theirs, theirs)
        self._stored, self.names_in_file = renamed, names_in_file

    def tensors(self) -> dict[str, Tensor]:
        """All of them, read. Those of floating-point numbers are float32."""
        read = {name: (stored.read(), foreign.is_plain(stored.dtype)) for name, stored in self._stored.items()}
        return {name: tensor.float() if is_plain else tensor for name, (tensor, is_plain) in read.items()}

    @property
    def types(self) -> dict[str, str]:
        """The type of each tensor's numbers, as torch calls it."""
        return {name: stored.dtype for name, stored in self._stored.items()}

    def check_plain(self) -> None:
        """Raises CheckpointError if the tensors are not the weights themselves: an adapter, or quantised ones."""
        types = {self.names_in_file.get(name, name): dtype for name, dtype in self.types.items()}
        if no_weights := foreign.of_tensors(self.file.name, types, self.json):
            raise CheckpointError(no_weights)

    def count(self, pattern: str) -> int:
        """One more than the largest number that the pattern's group matches; 0 when nothing does."""
        matches = (re.match(pattern, name) for name in self._stored)
        return max((int(match[1]) + 1 for match in matches if match), default=0)

    @cached_property
    def config(self) -> dict[str, Any]:
        """The content of config.json, empty if there is none."""
        return self.json("config.json")

    def json(self, name: str) -> dict[str, Any]:
        """The content of a JSON file beside the weights, empty if there is none. Raises CheckpointError if broken."""
        return read_beside(self.folder, name)

    def _add(self, file: Path) -> None:
        """Add the tensors of another file. Raises CheckpointError for a name that both files have."""
        more = open_weights(file).tensors
        if twice := sorted(self._stored.keys() & more.keys()):
            raise CheckpointError(f"{self.file.name} and {file.name} both have {twice[0]}: name the file to load")
        self._stored |= more


def _weights_files(path: Path) -> list[Path]:
    """A file itself; in a folder the file with a hub's name, else the only one or two, the larger first."""
    if path.is_file():
        return [path]
    if (path / ADAPTER).is_file():  # transformers loads it, whatever is beside it
        raise CheckpointError(_foreign(path, [ADAPTER]))
    for name in WEIGHT_FILES:
        if (path / name).is_file():
            return [path / name]
    if not path.exists():
        raise CheckpointError(places.missing(path))
    files = [file for file in path.iterdir() if _may_hold_weights(file.name)]
    if not files and (path / "manifest.json").is_file():
        raise CheckpointError(f"{path} is a bundle, so it is exported already: make serve BUNDLE={path}")
    if not files:
        raise CheckpointError(_without_weights(path))
    if len(files) > 2:
        raise CheckpointError(f"{path} has {len(files)} files with weights: name one, such as {min(files)}")
    return sorted(files, key=lambda file: file.stat().st_size, reverse=True)


def _may_hold_weights(file: str) -> bool:
    return file.endswith(LONE_FILES) and not foreign.is_named(file)


def _without_weights(folder: Path) -> str:
    """What a folder without weights has in their place."""
    names = places.names_in(folder)
    return (
        _foreign(folder.parent, [folder.name])
        or _foreign(folder, [name for name in names if "/" not in name])
        or places.below(folder, lambda files: any(file in WEIGHT_FILES or _may_hold_weights(file) for file in files))
        or _foreign(folder, names)
        or f"{folder} has no weights, such as model.safetensors or a file that ends in .pth or .pt"
        + (f". It has {first_few(names)}" if names else ": it is empty")
    )


def _foreign(folder: Path, names: Collection[str]) -> str:
    return foreign.of_names(str(folder), names, lambda name: read_beside(folder, name))
