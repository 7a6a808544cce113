"""The tensors of one weights file, each read when it is taken.

The content decides whether a file is safetensors, NumPy's npz, or PyTorch's zip or legacy pickle. Pickles are always
read with `weights_only`.
"""

import argparse
import json
import pickle
import re
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from model.checkpoints import foreign
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.foreign import INDEX

ZIP = b"PK\x03\x04"  # with which npz and PyTorch's files begin
SHORT = ("invalid header length", "incomplete metadata", "unexpected EOF", "truncated")  # in errors of both libraries
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
    "net",
    "teacher",
    "encoder",
    "target_encoder",
)
WRAPPER_PREFIXES = ("module.", "_orig_mod.", "model.", "net.", "network.", "backbone.", "timm_model.")


class Stored(NamedTuple):
    shape: tuple[int, ...]
    dtype: str  # as torch calls it, such as float32
    read: Callable[[], Tensor]


@dataclass(frozen=True, kw_only=True)
class Weights:
    tensors: dict[str, Stored]  # by name
    metadata: dict[str, str] = field(default_factory=dict)
    wrappers: tuple[str, ...] = ()  # names of the dictionaries around the state dict
    chosen: str = ""  # which state dict was taken, where the file has several
    architecture: str = ""  # as a training script has named it
    arguments: dict[str, Any] = field(default_factory=dict)  # of the command line of that script


def open_weights(file: Path) -> Weights:
    """Raises CheckpointError for a file of another kind, or one that was cut off."""
    with file.open("rb") as content:
        start = content.read(9)
    # safetensors: the length of the header in eight bytes, whose first is sometimes that of pickles, and the header
    fits = start[8:] == b"{" and int.from_bytes(start[:8], "little") < file.stat().st_size
    if no_weights := foreign.of_file(file, lambda name: read_beside(file.parent, name)):
        raise CheckpointError(no_weights)
    if not start or (start.startswith(ZIP) and not zipfile.is_zipfile(file)):
        raise _cut_off(file)
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            is_npz = any(name.endswith(".npy") for name in archive.namelist())
        return _open_npz(file) if is_npz else _open_pickle(file)
    if start[:1] == b"\x80" and not fits:
        return _open_pickle(file)
    if file.name.endswith(INDEX):
        shards = read_json(file).get("weight_map", {}).values()
        return _open_safetensors(file, [file.parent / shard for shard in sorted(set(shards))])
    return _open_safetensors(file, [file])


def read_json(path: Path) -> dict[str, Any]:
    """Raises CheckpointError unless it is a JSON object."""
    try:
        content = json.loads(path.read_text())
    except (ValueError, OSError):
        content = None
    if not isinstance(content, dict):
        raise CheckpointError(f"{path.name} is not a JSON object")
    return content


def read_beside(folder: Path, name: str) -> dict[str, Any]:
    """The content of a JSON file in a folder, empty if there is none. Raises CheckpointError if broken."""
    path = folder / name
    return read_json(path) if path.is_file() else {}


def _open_safetensors(listing: Path, shards: list[Path]) -> Weights:
    tensors: dict[str, Stored] = {}
    metadata: dict[str, str] = {}
    for shard in shards:
        if not shard.is_file():
            raise CheckpointError(f"{listing.name} lists {shard.name}, which is not beside it")
        try:
            file = safe_open(shard, framework="pt")
        except (SafetensorError, OSError) as error:
            if any(sign in str(error) for sign in SHORT):
                raise _cut_off(shard) from None
            raise CheckpointError(f"{shard.name} is neither safetensors, npz nor a PyTorch file") from None
        metadata |= file.metadata() or {}
        for key in file.keys():  # noqa: SIM118 - safe_open is no mapping
            part = file.get_slice(key)
            tensors[key] = Stored(tuple(part.get_shape()), _spelt(part.get_dtype()), partial(file.get_tensor, key))
    return Weights(tensors=_strip(tensors), metadata=metadata)


def _open_npz(file: Path) -> Weights:
    archive = np.load(file, allow_pickle=False)
    tensors: dict[str, Stored] = {}
    for name in archive.files:
        with archive.zip.open(f"{name}.npy") as member:
            version = np.lib.format.read_magic(member)
            read_header = (
                np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            )
            shape, _, dtype = read_header(member)
            kind = "bfloat16" if _is_bfloat16(dtype) else dtype.name
            tensors[name] = Stored(tuple(shape), kind, partial(_from_numpy, archive, name))
    return Weights(tensors=tensors)


def _open_pickle(file: Path) -> Weights:
    try:
        with torch.serialization.safe_globals([argparse.Namespace]):  # the command line that trained it
            content = torch.load(file, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(file))
    except (EOFError, IndexError, struct.error):  # in the middle of a record
        raise _cut_off(file) from None
    except (pickle.UnpicklingError, RuntimeError, ValueError, KeyError) as error:
        if any(sign in str(error) for sign in SHORT):
            raise _cut_off(file) from None
        if quantised := foreign.of_classes(file.name, error):
            raise CheckpointError(quantised) from None
        raise CheckpointError(
            f"{file.name} is not a PyTorch file of plain tensors: it holds code or other objects, which are "
            "never run; save its state_dict() instead"
        ) from None
    state, wrappers, others = _unwrap(content)
    architecture, arguments = content.get("arch"), content.get("args")
    return Weights(
        # Some are parameters, which are plain tensors from here on.
        tensors={name: _stored(tensor) for name, tensor in _strip(state).items()},
        wrappers=wrappers,
        chosen=f"{wrappers[-1]}; the file has {', '.join(others)} too" if others else "",
        architecture=re.sub(r"^hf[-_]hub:timm/", "", architecture) if isinstance(architecture, str) else "",
        arguments=dict(vars(arguments)) if isinstance(arguments, argparse.Namespace) else {},
    )


def _cut_off(file: Path) -> CheckpointError:
    size = file.stat().st_size
    return CheckpointError(f"{file.name} is cut off after {size:,} bytes: copy or download it again")


def _strip(named: dict[str, Any]) -> dict[str, Any]:
    """Drop the prefixes that training wrappers put before names, one inside the other in any order."""
    for prefix in WRAPPER_PREFIXES:
        if named and sum(key.startswith(prefix) for key in named) > len(named) / 2:
            stripped = {key.removeprefix(prefix): value for key, value in named.items()}
            if len(stripped) < len(named):
                twice = next(key for key in named if key.startswith(prefix) and key.removeprefix(prefix) in named)
                raise CheckpointError(
                    f"the file has both {twice} and {twice.removeprefix(prefix)}: save one network alone"
                )
            return _strip(stripped)
    return named


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
    keys = f"; it has {', '.join(map(str, [*content][:5]))}" if isinstance(content, dict) else ""
    raise CheckpointError(f"the file holds no state dict{keys}")


def _holds_tensors(content: Any) -> bool:
    """Whether a dictionary, or one in it, has a tensor."""
    return isinstance(content, dict) and any(isinstance(v, Tensor) or _holds_tensors(v) for v in content.values())


def _stored(tensor: Tensor) -> Stored:
    return Stored(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), tensor.detach)


def _spelt(dtype: str) -> str:
    """A type as torch spells it, such as float8_e5m2, of safetensors' F8_E5M2."""
    words = {"I": "int", "U": "uint", "F": "float", "BF": "bfloat", "C": "complex"}
    return re.sub(r"^(BF|[IUFC])(?=\d)", lambda kind: words[kind[1]], dtype).lower()


def _is_bfloat16(dtype: Any) -> bool:
    """NumPy reads bfloat16 arrays from npz as two raw bytes per element."""
    return bool(dtype.kind == "V" and dtype.itemsize == 2)


def _from_numpy(archive: Any, name: str) -> Tensor:
    array = archive[name]
    if _is_bfloat16(array.dtype):
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(np.ascontiguousarray(array))
