"""A checkpoint on disk: its tensors, each read when it is taken, and the JSON files beside them.

The content decides whether a file is safetensors, NumPy's npz, or PyTorch's zip or legacy pickle. Pickles are always
read with `weights_only`.
"""

import argparse
import json
import pickle
import re
import zipfile
from collections.abc import Callable, Collection
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from model.checkpoints.checkpoint import CheckpointError

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
# Dictionaries around a state dict, the first that is there before the others. timm's train.py evaluates state_dict_ema,
# the moving average of state_dict (models/_helpers.py load_state_dict, use_ema).
WRAPPERS = (
    "state_dict_ema",
    "model",
    "state_dict",
    "model_state_dict",  # as PyTorch's tutorials save it
    "model_state",
    "model_ema",
    "module",  # DeepSpeed
    "teacher",
    "encoder",
    "target_encoder",
)
WRAPPER_PREFIXES = ("module.", "_orig_mod.", "model.", "backbone.", "timm_model.")


class Source:
    """Tensors by name. It records which of them are taken, so that no tensor is dropped silently."""

    def __init__(self, path: Path, *, name: str | None = None) -> None:
        """`path` is a weights file, or a folder with one or with a backbone and its head.

        Raises CheckpointError for anything else.
        """
        self.file, *others = _weights_files(path)
        self.name = name or (path.resolve().name if path.is_dir() else Path(path.name.removesuffix(".tar")).stem)
        self.folder = self.file.parent
        self.metadata: dict[str, str] = {}
        self.wrappers: tuple[str, ...] = ()  # names of the dictionaries around the state dict
        self.weights = ""  # which state dict was taken, where the file has several
        self.architecture = ""  # as a training script has named it
        self.arguments: dict[str, Any] = {}  # of the command line of that script
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._read: Callable[[str], Tensor]
        self._open()
        for other in others:
            self._add(Source(other))
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
        if key not in self._shapes:
            raise CheckpointError(f"{self.file.name} has no {key}")
        self.used.add(key)
        tensor = self._read(key)
        return tensor.float() if tensor.is_floating_point() else tensor

    def ignore(self, pattern: str) -> None:
        """Declare the tensors whose whole name matches as known and not needed."""
        self.used.update(key for key in self._shapes if re.fullmatch(pattern, key))

    @property
    def unused(self) -> list[str]:
        return sorted(self._shapes.keys() - self.used)

    def count(self, pattern: str) -> int:
        """One more than the largest number that the pattern's group matches; 0 when nothing does."""
        found = (re.match(pattern, key) for key in self._shapes)
        return max((int(match[1]) + 1 for match in found if match), default=0)

    @cached_property
    def config(self) -> dict[str, Any]:
        """The content of config.json, empty if there is none."""
        return self.json("config.json")

    def json(self, name: str) -> dict[str, Any]:
        """The content of a JSON file beside the weights, empty if there is none. Raises CheckpointError if broken."""
        path = self.folder / name
        if not path.is_file():
            return {}
        try:
            content = json.loads(path.read_text())
        except (ValueError, OSError):
            content = None
        if not isinstance(content, dict):
            raise CheckpointError(f"{path.name} is not a JSON object")
        return content

    def _add(self, other: Self) -> None:
        """Add the tensors of another file. Raises CheckpointError for a name that both files have."""
        twice = sorted(self._shapes.keys() & other._shapes.keys())
        if twice:
            raise CheckpointError(f"{self.file.name} and {other.file.name} both have {twice[0]}: name the file to load")
        read = self._read
        self._read = lambda key: other._read(key) if key in other else read(key)
        self._shapes |= other._shapes

    def _open(self) -> None:
        with self.file.open("rb") as file:
            start = file.read(9)
        # safetensors: the length of the header in eight bytes, whose first is sometimes that of pickles, and the header
        fits = start[8:] == b"{" and int.from_bytes(start[:8], "little") < self.file.stat().st_size
        if zipfile.is_zipfile(self.file):
            with zipfile.ZipFile(self.file) as archive:
                is_npz = any(name.endswith(".npy") for name in archive.namelist())
            self._open_npz() if is_npz else self._open_pickle()
        elif start[:1] == b"\x80" and not fits:
            self._open_pickle()
        elif self.file.name.endswith(".index.json"):
            shards = self.json(self.file.name).get("weight_map", {}).values()
            self._open_safetensors(*(self.folder / shard for shard in sorted(set(shards))))
        else:
            self._open_safetensors(self.file)

    def _open_safetensors(self, *shards: Path) -> None:
        found: dict[str, tuple[Any, str]] = {}  # the file and the key in it
        for shard in shards:
            if not shard.is_file():
                raise CheckpointError(f"{self.file.name} lists {shard.name}, which is not beside it")
            try:
                file = safe_open(shard, framework="pt")
            except (SafetensorError, OSError):
                raise CheckpointError(f"{shard.name} is neither safetensors, npz nor a PyTorch file") from None
            self.metadata |= file.metadata() or {}
            found |= {key: (file, key) for key in file.keys()}  # noqa: SIM118 - safe_open is no mapping
        found = self._strip(found)
        self._shapes = {name: tuple(file.get_slice(key).get_shape()) for name, (file, key) in found.items()}
        self._read = lambda name: found[name][0].get_tensor(found[name][1])

    def _open_npz(self) -> None:
        archive = np.load(self.file, allow_pickle=False)
        for name in archive.files:
            with archive.zip.open(f"{name}.npy") as member:
                version = np.lib.format.read_magic(member)
                read_header = (
                    np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                )
                self._shapes[name] = tuple(read_header(member)[0])
        self._read = lambda name: _from_numpy(archive[name])

    def _open_pickle(self) -> None:
        try:
            with torch.serialization.safe_globals([argparse.Namespace]):  # the command line that trained it
                content = torch.load(
                    self.file, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(self.file)
                )
        except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError):
            raise CheckpointError(
                f"{self.file.name} is not a PyTorch file of plain tensors: it holds code or other objects, which are "
                "never run; save its state_dict() instead"
            ) from None
        state, self.wrappers, others = _unwrap(content)
        if others:
            self.weights = f"{self.wrappers[-1]}; the file has {', '.join(others)} too"
        if isinstance(content, dict) and isinstance(content.get("arch"), str):
            self.architecture = re.sub(r"^hf[-_]hub:timm/", "", content["arch"])
        if isinstance(content, dict) and isinstance(content.get("args"), argparse.Namespace):
            self.arguments = dict(vars(content["args"]))
        tensors = self._strip(state)
        self._shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        self._read = lambda name: tensors[name]

    @staticmethod
    def _strip(named: dict[str, Any]) -> dict[str, Any]:
        """Drop the prefixes that training wrappers put before names."""
        for prefix in WRAPPER_PREFIXES:
            if named and sum(key.startswith(prefix) for key in named) > len(named) / 2:
                named = {key.removeprefix(prefix): value for key, value in named.items()}
        return named


def _weights_files(path: Path) -> list[Path]:
    """A file itself; in a folder the file with a hub's name, else the only one or two, the larger first."""
    if path.is_file():
        return [path]
    for name in WEIGHT_FILES:
        if (path / name).is_file():
            return [path / name]
    if not path.is_dir():
        raise CheckpointError(f"{path} is not a file")
    found = [file for file in path.iterdir() if file.name.endswith(LONE_FILES)]
    if len(found) not in (1, 2):
        raise CheckpointError(
            f"{path} has none of {', '.join(WEIGHT_FILES)}, and {len(found)} files of {', '.join(LONE_FILES)}: name one"
        )
    return sorted(found, key=lambda file: file.stat().st_size, reverse=True)


def _unwrap(content: Any) -> tuple[dict[str, Tensor], tuple[str, ...], list[str]]:
    """The state dict in what a training script saved, the names of the dictionaries around it, and of those beside it.

    A tensor beside those dictionaries, such as a counter, is no weight. Raises CheckpointError without a state dict.
    """
    wrappers: tuple[str, ...] = ()
    others: list[str] = []
    while isinstance(content, dict):
        inside = [name for name in WRAPPERS if _holds_tensors(content.get(name))]
        if not inside:
            tensors = {key: value for key, value in content.items() if isinstance(value, Tensor)}
            if not tensors:
                break
            return tensors, wrappers, others
        wrappers, content, others = (*wrappers, inside[0]), content[inside[0]], inside[1:]
    raise CheckpointError("the file holds no state dict")


def _holds_tensors(content: Any) -> bool:
    """Whether a dictionary, or one in it, has a tensor."""
    return isinstance(content, dict) and any(isinstance(v, Tensor) or _holds_tensors(v) for v in content.values())


def _from_numpy(array: np.ndarray[Any, Any]) -> Tensor:
    """NumPy reads bfloat16 arrays from npz as two raw bytes an element."""
    if array.dtype.kind == "V" and array.dtype.itemsize == 2:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(np.ascontiguousarray(array))
