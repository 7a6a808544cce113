"""The tensors of one weights file, each read when it is taken.

The content decides whether a file is safetensors, NumPy's npz, or PyTorch's zip or legacy pickle. Pickles are always
read with `weights_only`.
"""

import os
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from model.checkpoints import foreign, pickles
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.files import read_json
from model.checkpoints.foreign import INDEX
from model.checkpoints.pickles import SHORT, cut_off

ZIP = b"PK\x03\x04"  # with which npz and PyTorch's files begin
Place = tuple[str, ...]  # names of the dictionaries around a state dict
DEEPEST = 8  # of them, at most


class Stored(NamedTuple):
    shape: tuple[int, ...]
    dtype: str  # as torch calls it, such as float32; of FORMS of model/checkpoints/foreign.py its form
    read: Callable[[], Tensor]


@dataclass(frozen=True, kw_only=True)
class Weights:
    states: dict[Place, dict[str, Stored]]  # the state dicts of the file: tensors by name
    metadata: dict[str, str] = field(default_factory=dict)
    content: Any = None  # of a pickle


def open_weights(file: Path) -> Weights:
    """Raises CheckpointError for a file of another kind, or one that was cut off or damaged."""
    with _readable(file.name):
        return _open(file)


@contextmanager
def _readable(what: str) -> Iterator[None]:
    """Raises CheckpointError for the errors of zipfile and NumPy, which have no common base."""
    try:
        yield
    except (CheckpointError, OSError):
        raise
    except Exception as error:
        reason = str(error).rstrip(".")
        raise CheckpointError(f"{what} cannot be read: {reason}. Copy or download the file again") from None


def _open(file: Path) -> Weights:
    with file.open("rb") as content:
        start = content.read(9)
    # safetensors: the length of the header in eight bytes, whose first is sometimes that of pickles, and the header
    fits = start[8:] == b"{" and int.from_bytes(start[:8], "little") < file.stat().st_size
    if no_weights := foreign.of_file(file):
        raise CheckpointError(no_weights)
    if not start or (start.startswith(ZIP) and not zipfile.is_zipfile(file)):
        raise cut_off(file)
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            is_npz = any(name.endswith(".npy") for name in archive.namelist())
        return _open_npz(file) if is_npz else _open_pickle(file)
    if start[:1] == b"\x80" and not fits:
        return _open_pickle(file)
    if file.name.endswith(INDEX):
        return _open_shards(file)
    return _open_safetensors(file)


def _open_shards(listing: Path) -> Weights:
    """The weights of all files that `listing` names, which may lie in folders beside it. A tensor that several have is
    the one of the file that is listed for it.
    """
    listed = read_json(listing).get("weight_map")
    if not (isinstance(listed, dict) and listed and all(isinstance(shard, str) for shard in listed.values())):
        raise CheckpointError(f"{listing.name} has no weight_map, which lists the file of each tensor")
    tensors: dict[str, Stored] = {}
    metadata: dict[str, str] = {}
    for name in sorted({*listed.values()}):
        shard = listing.parent / name
        if name.endswith(INDEX):  # they could list each other without an end
            raise CheckpointError(f"{listing.name} lists {name!r}, which is no file with weights but another list")
        if not os.path.isfile(shard):  # noqa: PTH113 (False too for what cannot be a name, and links in a circle)
            raise CheckpointError(f"{listing.name} lists {name!r}, which is not in its folder")
        # Files may be links: in the Hugging Face Hub's cache all are.
        if not shard.parent.resolve().is_relative_to(listing.parent.resolve()):
            raise CheckpointError(
                f"{listing.name} lists {name!r}, which is outside its folder: only files in it are read"
            )
        opened = open_weights(shard)
        metadata |= opened.metadata
        for tensor, stored in opened.states.get((), {}).items():
            if tensor not in tensors or listed.get(tensor, name) == name:
                tensors[tensor] = stored
    about = read_json(listing).get("metadata")
    if isinstance(about, dict):
        metadata |= {key: value for key, value in about.items() if isinstance(value, str)}
    return Weights(states={(): _with_shared(tensors, metadata)}, metadata=metadata)


def _open_safetensors(path: Path) -> Weights:
    try:
        file = safe_open(path, framework="pt")
    except (SafetensorError, OSError) as error:
        if any(sign in str(error) for sign in SHORT):
            raise cut_off(path) from None
        raise CheckpointError(f"{path.name} is neither safetensors, npz nor a PyTorch file") from None
    tensors = {}
    for key in file.keys():  # noqa: SIM118 - safe_open is not a mapping
        part = file.get_slice(key)
        tensors[key] = Stored(tuple(part.get_shape()), _spelt(part.get_dtype()), partial(file.get_tensor, key))
    metadata = file.metadata() or {}
    return Weights(states={(): _with_shared(tensors, metadata)}, metadata=metadata)


def _with_shared(tensors: dict[str, Stored], metadata: dict[str, str]) -> dict[str, Stored]:
    """The tensors, with the names that safetensors' save_model leaves out, because their tensor is in the file under
    another name. The metadata has that name under each of them.
    """
    shared = {name: tensors[kept] for name, kept in metadata.items() if kept in tensors}
    return shared | tensors


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
            tensors[name] = Stored(tuple(shape), kind, partial(_from_numpy, file, archive, name))
    return Weights(states={(): tensors})


def _open_pickle(file: Path) -> Weights:
    content = pickles.load(file)
    states = dict(_state_dicts(content))
    if not states and pickles.has_arrays(content):
        raise CheckpointError(
            f"{file.name} holds NumPy's arrays in place of tensors. Where it was made, write them as npz: "
            'numpy.savez("OTHER.npz", **arrays)'
        )
    if not states:
        keys = f"; it has {', '.join(map(str, [*content][:5]))}" if isinstance(content, dict) else ""
        raise CheckpointError(f"the file holds no state dict{keys}")
    return Weights(states=states, content=content)


def _state_dicts(content: Any, place: Place = ()) -> Iterator[tuple[Place, dict[str, Stored]]]:
    """The dictionaries that have tensors by name, in any others and in lists."""
    if len(place) > DEEPEST:
        return
    if isinstance(content, list | tuple):
        content = {str(i): part for i, part in enumerate(content)}
    elif isinstance(content, dict):
        # Some are parameters, which are plain tensors from here on.
        named = {k: _stored(t) for k, t in content.items() if isinstance(t, Tensor)}
        if tensors := {name: stored for name, stored in named.items() if isinstance(name, str)}:
            yield place, tensors
    else:
        return
    for name, part in content.items():
        if isinstance(name, str):
            yield from _state_dicts(part, (*place, name))


def _stored(tensor: Tensor) -> Stored:
    if tensor.is_nested:  # it has no shape
        return Stored((), "nested", tensor.detach)
    form = "meta" if tensor.is_meta else "" if tensor.layout == torch.strided else "sparse"
    return Stored(tuple(tensor.shape), form or str(tensor.dtype).removeprefix("torch."), tensor.detach)


def _spelt(dtype: str) -> str:
    """A type as torch spells it, such as float8_e5m2, of safetensors' F8_E5M2."""
    words = {"I": "int", "U": "uint", "F": "float", "BF": "bfloat", "C": "complex"}
    return re.sub(r"^(BF|[IUFC])(?=\d)", lambda kind: words[kind[1]], dtype).lower()


def _is_bfloat16(dtype: Any) -> bool:
    """NumPy reads bfloat16 arrays from npz as two raw bytes per element."""
    return bool(dtype.kind == "V" and dtype.itemsize == 2)


def _from_numpy(file: Path, archive: Any, name: str) -> Tensor:
    with _readable(f"{name} in {file.name}"):
        array = archive[name]
        if _is_bfloat16(array.dtype):
            return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
        return torch.from_numpy(np.ascontiguousarray(array))
