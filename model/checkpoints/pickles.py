"""PyTorch's pickles, read with torch's `weights_only`, so that no code in them runs.

What training scripts save beside weights and holds no code (NumPy's numbers, paths, dates, plain containers) is
replaced by stand-ins that do nothing: neither NumPy nor any other package sees what the file says.
"""

import argparse
import pickle
import re
import struct
import zipfile
from pathlib import Path
from typing import Any

import torch

from model.checkpoints import foreign
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.stand_ins import Array, StandIn

SHORT = ("invalid header length", "incomplete metadata", "unexpected EOF", "truncated")  # in errors of both libraries
# In errors of torch: the name of what a pickle wants to import or call.
MET = re.compile(r"GLOBAL (\S+) |unrecognized function <(?:class '|function |built-in function )?([\w.]+)|got (\S.*)$")


def has_arrays(content: Any) -> bool:
    """Whether a dictionary has an array, or one of the dictionaries in it."""
    parts = [*content.values()] if isinstance(content, dict) else []
    inner = [value for part in parts if isinstance(part, dict) for value in part.values()]
    return any(isinstance(part, Array) for part in (*parts, *inner))


def _dictionary(*_: Any) -> dict[Any, Any]:
    """A defaultdict without its factory, which would be called."""
    return {}


def _list(*_: Any) -> list[Any]:
    return []


NUMPY = ("dtype", "ndarray", *(f"{kind}{bits}" for kind in ("int", "uint", "float") for bits in (8, 16, 32, 64)))
INERT = {
    "builtins": ("list", "tuple", "dict", "frozenset", "str", "int", "float", "bool", "bytes", "slice", "range"),
    "numpy": (*NUMPY, "bool", "bool_", "str_"),
    **{f"numpy.{core}.multiarray": ("scalar",) for core in ("core", "_core")},
    **{
        module: tuple(f"{pure}{kind}" for pure in ("Pure", "") for kind in ("Path", "PosixPath", "WindowsPath"))
        for module in ("pathlib", "pathlib._local")
    },
    "datetime": ("datetime", "date", "time", "timedelta", "timezone"),
    "uuid": ("UUID",),
    "decimal": ("Decimal",),
    "fractions": ("Fraction",),
}
SAFE: list[Any] = [  # beside what torch itself allows
    argparse.Namespace,  # the command line that trained it, which loaders read
    (argparse.Namespace, "types.SimpleNamespace"),
    (_dictionary, "collections.defaultdict"),
    (_list, "collections.deque"),
    *((Array, f"numpy.{core}.multiarray._reconstruct") for core in ("core", "_core")),
    *((StandIn, f"{module}.{name}") for module, names in INERT.items() for name in names),
]


def load(file: Path) -> Any:
    """The content of a pickle. Raises CheckpointError for one that was cut off, or that holds code."""
    try:
        with torch.serialization.safe_globals(SAFE):
            return torch.load(file, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(file))
    except (EOFError, IndexError, struct.error):  # in the middle of a record
        raise cut_off(file) from None
    except OSError:
        raise
    except Exception as error:  # torch's reader raises what the content of a file makes it raise
        if any(sign in str(error) for sign in SHORT):
            raise cut_off(file) from None
        if quantised := foreign.of_classes(file.name, error):
            raise CheckpointError(quantised) from None
        raise CheckpointError(
            f"{file.name} is not a PyTorch file of plain tensors: it holds {_met(error)}, which is never run. Where "
            "the file was made, save the state dict alone: torch.save(model.state_dict(), FILE)"
        ) from None


def _met(error: Exception) -> str:
    """What the file holds besides tensors."""
    if "TorchScript" in str(error):
        return "a TorchScript program"
    found = MET.search(str(error)) if isinstance(error, pickle.UnpicklingError) else None
    name = next(filter(None, found.groups()), "") if found else ""
    return name.removeprefix("__main__.").strip("<>'") or "code or other objects"


def cut_off(file: Path) -> CheckpointError:
    size = file.stat().st_size
    return CheckpointError(f"{file.name} is cut off after {size:,} bytes: copy or download it again")
