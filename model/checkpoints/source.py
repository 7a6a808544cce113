"""A checkpoint on disk: the tensors of its files, and the JSON files beside them."""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from model.checkpoints import foreign, statements
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.class_names import files_in, found_in
from model.checkpoints.computed import refusal, whole
from model.checkpoints.files import read_beside, weights_files
from model.checkpoints.networks import leave_out, take
from model.checkpoints.statements import Said, networks, of_pixels
from model.checkpoints.weights import Stored, open_weights

# Regular expressions and what takes the place of each match, one after the other: names of a library to our own.
Names = Sequence[tuple[str, str | Callable[[re.Match[str]], str]]]
PROJECTION = re.compile(r"(.*\.)?(patch_embed\.proj|patch_embeddings?(\.projection)?|conv_proj|conv1)\.weight")


class Source:
    """Tensors by name. What is known without reading them is their shapes."""

    def __init__(
        self, path: Path, *, name: str | None = None, weights: str | None = None, without: Sequence[str] = ()
    ) -> None:
        """`path` is a weights file, or a folder with one or with a backbone and its head.

        `weights` chooses among the networks of a file. Tensors whose names match a pattern of `without` are left out.
        Raises CheckpointError for anything else, and for a pattern that no name matches.
        """
        files = weights_files(path)
        self.file = files[0]
        self.name = name or (path.resolve().name if path.is_dir() else Path(path.name.removesuffix(".tar")).stem)
        self.folder = self.file.parent
        self._stored: dict[str, Stored] = {}
        self.names_in_file: dict[str, str] = {}  # by the names that tensors have now; messages use them
        self.beside: set[str] = set()  # names, as they are at first, of tensors that stand beside the network
        self.foreign_head = ""  # what the file calls a head that stands beside the network under another name
        self.unread: list[str] = []  # names in the file of counters, losses and metrics
        opened = [open_weights(file) for file in files]
        first = opened[0]
        self.metadata, self.arguments = first.metadata, statements.arguments(first.content)
        self._statements = [
            *((one.metadata, "the metadata") for one in opened),
            *((one.content, "the file") for one in opened),
            *statements.beside(self.folder),
        ]
        out: set[str] = set()
        for file, content in zip(files, opened, strict=True):
            states, names = leave_out(content.states, without)
            out |= names
            states = {place: whole(state) for place, state in states.items()}
            taken = take(states, file=file.name, weights=weights)
            if twice := sorted(self._stored.keys() & taken.tensors.keys()):
                raise CheckpointError(f"{self.file.name} and {file.name} both have {twice[0]}: name the file to load")
            self._stored |= taken.tensors
            self.names_in_file |= taken.names_in_file
            self.beside |= taken.beside
            self.unread += taken.unread
            if file == self.file:
                self.wrappers, self.chosen, self.follows = taken.place, taken.chosen, taken.follows
        if idle := [pattern for pattern in without if not any(fnmatchcase(name, pattern) for name in out)]:
            raise CheckpointError(f"--without {idle[0]}: {self.file.name} has no tensor of such a name")

    def __contains__(self, name: str) -> bool:
        return name in self._stored

    @property
    def names(self) -> Collection[str]:
        return self._stored.keys()

    def shape(self, name: str) -> tuple[int, ...]:
        """Raises CheckpointError if there is no such tensor."""
        if name not in self._stored:
            raise CheckpointError(refusal(self.names_in_file.values()) or f"{self.file.name} has no {name}")
        return self._stored[name].shape

    def read(self, name: str) -> Tensor:
        """One of them, as it is stored."""
        return self._stored[name].read()

    def stored(self, names: Iterable[str]) -> list[Stored]:
        return [self._stored[name] for name in names]

    def replace(self, parts: Collection[str], made: dict[str, Stored]) -> None:
        """`made` in place of `parts`, of which they are computed, and of what has their names."""
        self._stored = {name: stored for name, stored in self._stored.items() if name not in parts} | made
        self.names_in_file = {name: name for name in made} | self.names_in_file

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

    def outlines(self) -> dict[str, Tensor]:
        """All of them as on torch's meta device, without values. Vectors are read."""
        return {
            name: stored.read()
            if max(stored.shape, default=1) == prod(stored.shape)
            else torch.empty(stored.shape, device="meta")
            for name, stored in self._stored.items()
        }

    @property
    def types(self) -> dict[str, str]:
        """The type of each tensor's numbers, as torch calls it."""
        return {name: stored.dtype for name, stored in self._stored.items()}

    def check_plain(self) -> None:
        """Raises CheckpointError if the tensors are not the weights themselves: an adapter, or quantised ones."""
        types = {self.names_in_file.get(name, name): dtype for name, dtype in self.types.items()}
        if no_weights := foreign.of_tensors(self.file.name, types, self.config):
            raise CheckpointError(no_weights)
        for name, (shape, *_) in self._stored.items():
            if PROJECTION.fullmatch(name) and (len(shape) > 4 or (len(shape) == 4 and shape[2] != shape[3])):
                raise CheckpointError(
                    f"{self.file.name} has the shape {shape} of {self.names_in_file[name]}: supported are patches of "
                    "an image, (width, channels, side, side)"
                )

    def count(self, pattern: str) -> int:
        """One more than the largest number that the pattern's group matches; 0 when nothing does."""
        matches = (re.match(pattern, name) for name in self._stored)
        return max((int(match[1]) + 1 for match in matches if match), default=0)

    @cached_property
    def config(self) -> dict[str, Any]:
        """The content of config.json, empty if there is none."""
        return self.json("config.json")

    @property
    def class_names(self) -> dict[str, Any]:
        """What may be names of classes, by where it stands: in the files, in config.json, or a file beside them."""
        places = [*self._statements, (self.config, "config.json")]
        return {where: names for content, of in places for where, names in found_in(content, of=of).items()} | files_in(
            self.folder
        )

    @cached_property
    def said(self) -> tuple[Said, ...]:
        """What is said of pixels, in the files and beside them."""
        return tuple(said for content, of in self._statements for said in of_pixels(content, of=of))

    @cached_property
    def architectures(self) -> list[str]:
        """What scripts call their networks there."""
        return [name for content, _ in self._statements for name in networks(content)]

    def json(self, name: str) -> dict[str, Any]:
        """The content of a JSON file beside the weights, empty if there is none. Raises CheckpointError if broken."""
        return read_beside(self.folder, name)
