"""A checkpoint on disk: its tensors, read only when asked for, and the JSON files that lie beside them.

Safetensors, NumPy's npz and PyTorch's zip or legacy pickles are told apart by their content. Pickles are read with
`weights_only`, never otherwise.
"""

import json
import pickle
import re
import zipfile
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from model.checkpoints.checkpoint import CheckpointError

WEIGHT_FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "open_clip_model.safetensors",
    "pytorch_model.bin",
    "open_clip_pytorch_model.bin",
)
WRAPPERS = ("model", "state_dict", "model_state", "model_ema", "teacher", "encoder", "target_encoder")
WRAPPER_PREFIXES = ("module.", "_orig_mod.", "backbone.", "timm_model.")


class Source:
    """Tensors by name. What is taken is remembered, so that nothing is dropped in silence."""

    def __init__(self, path: Path, *, name: str | None = None) -> None:
        """`path` is a weights file or a folder that holds one. Raises CheckpointError."""
        self.file = _weights_file(path)
        self.name = name or (path.stem if path.is_file() else path.resolve().name)
        self.folder = self.file.parent
        self._beside = path.is_dir()
        self.metadata: dict[str, str] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._read: Callable[[str], Tensor]
        self._open()
        self.used: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self._shapes

    def keys(self) -> Iterable[str]:
        return self._shapes.keys()

    def shape(self, key: str) -> tuple[int, ...]:
        """Known without reading the tensor."""
        return self._shapes[key]

    def take(self, key: str) -> Tensor:
        """The tensor, float32 where it is a floating-point one. Raises CheckpointError when it is not there."""
        if key not in self._shapes:
            raise CheckpointError(f"{self.file.name} has no {key}")
        self.used.add(key)
        tensor = self._read(key)
        return tensor.float() if tensor.is_floating_point() else tensor

    def ignore(self, pattern: str) -> None:
        """Declare tensors whose whole name matches as known and not needed."""
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
        """config.json, empty when there is none."""
        return self.json("config.json")

    def json(self, name: str) -> dict[str, Any]:
        """A JSON file beside the weights, empty when there is none. Raises CheckpointError for a broken one."""
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

    def _open(self) -> None:
        head = self.file.read_bytes()[:9] if self.file.stat().st_size < 9 else _head(self.file)
        if zipfile.is_zipfile(self.file):
            with zipfile.ZipFile(self.file) as archive:
                is_npz = any(name.endswith(".npy") for name in archive.namelist())
            self._open_npz() if is_npz else self._open_pickle()
        elif head[:1] == b"\x80":
            self._open_pickle()
        elif self.file.name.endswith(".index.json"):
            shards = self.json(self.file.name).get("weight_map", {}).values()
            self._open_safetensors(*(self.folder / shard for shard in sorted(set(shards))))
        else:
            self._open_safetensors(self.file)

    def _open_safetensors(self, *shards: Path) -> None:
        found: dict[str, tuple[Any, str]] = {}  # in which file, and under which key
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
            content = torch.load(self.file, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(self.file))
        except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError):
            raise CheckpointError(
                f"{self.file.name} is no PyTorch file of plain tensors: it holds code or other objects, which are "
                "never run; save its state_dict() instead"
            ) from None
        tensors = self._strip(_unwrap(content))
        self._shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        self._read = lambda name: tensors[name]

    @staticmethod
    def _strip(named: dict[str, Any]) -> dict[str, Any]:
        """Drop prefixes that training wrappers put before every name."""
        for prefix in WRAPPER_PREFIXES:
            if named and sum(key.startswith(prefix) for key in named) > len(named) / 2:
                named = {key.removeprefix(prefix): value for key, value in named.items()}
        return named


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(9)


def _weights_file(path: Path) -> Path:
    if path.is_file():
        return path
    for name in WEIGHT_FILES:
        if (path / name).is_file():
            return path / name
    if path.is_dir():
        raise CheckpointError(f"{path} has none of {', '.join(WEIGHT_FILES)}")
    raise CheckpointError(f"{path} is not a file")


def _unwrap(content: Any) -> dict[str, Tensor]:
    """The state dict in what a training script saved. Raises CheckpointError when there is none."""
    while isinstance(content, dict):
        tensors = {key: value for key, value in content.items() if isinstance(value, Tensor)}
        if tensors:
            return tensors
        inner = next((content[name] for name in WRAPPERS if isinstance(content.get(name), dict)), None)
        content = inner
    raise CheckpointError("the file holds no state dict")


def _from_numpy(array: np.ndarray[Any, Any]) -> Tensor:
    """bfloat16 arrays come back from npz as two raw bytes an element."""
    if array.dtype.kind == "V" and array.dtype.itemsize == 2:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(np.ascontiguousarray(array))
