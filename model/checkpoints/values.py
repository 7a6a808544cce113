"""The values of weights: finite numbers that stand for themselves. Others cause faults that look like others."""

from collections.abc import Collection

import torch
from torch import Tensor

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.foreign import QUANTISED, is_plain
from model.checkpoints.source import Source
from model.checkpoints.tensors import State

SAMPLE = 1000  # numbers of a matrix that are looked at first
LEAST_CODE = 4  # the largest of them is at least this; matrices of zeros and ones are no codes


def check_values(tensors: State, expected: Collection[str], source: Source) -> None:
    """`tensors` were made of those of the source; `expected` are the names that the network has. Raises CheckpointError
    with the name, as in the file, of one that is not of floating-point numbers, or has a NaN or an infinite number.

    Tensors that the network has no place for may have any.
    """
    for name, dtype in source.types.items():
        if not is_plain(dtype) and (name in expected or name not in tensors):  # as it is, or as a part of another
            raise CheckpointError(
                f"{source.file.name} has numbers of the type {dtype} in {source.names_in_file.get(name, name)}: save "
                "it with floating-point numbers"
            )
    if whole := [name for name, tensor in tensors.items() if name in expected and _is_codes(tensor)]:
        raise CheckpointError(
            f"{source.file.name} has whole numbers alone in {source.names_in_file.get(whole[0], whole[0])}: "
            f"{QUANTISED.do}"
        )
    broken = _broken({name: tensor for name, tensor in tensors.items() if name in expected})
    if not broken:
        return
    names = [source.names_in_file.get(name, name) for name in _broken(source.tensors())] or broken
    more = f" and in {len(names) - 1} more tensors" if names[1:] else ""
    raise CheckpointError(
        f"{source.file.name} has NaN or infinite numbers in {names[0]}{more}. Training has diverged, or float16 was "
        "too small for it: take an earlier checkpoint, or train again in float32 or bfloat16"
    )


def _is_codes(tensor: Tensor) -> bool:
    """Whether a matrix has the integers of a quantised one, without its scales, as floating-point numbers."""
    if tensor.ndim < 2 or not tensor.is_floating_point():
        return False
    few = tensor.flatten()[:SAMPLE]
    return bool((few == few.round()).all() and few.abs().max() >= LEAST_CODE and (tensor == tensor.round()).all())


def _broken(tensors: State) -> list[str]:
    return [name for name, tensor in tensors.items() if tensor.dtype == torch.float32 and not _is_finite(tensor)]


def _is_finite(tensor: Tensor) -> bool:
    """A sum takes no memory. It is not finite if a number is not; if it only overflows, each number is looked at."""
    return bool(tensor.sum().isfinite() or tensor.isfinite().all())
