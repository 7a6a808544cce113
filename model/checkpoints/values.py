"""The values of weights: finite numbers that stand for themselves. Others cause faults that look like something else."""

from collections.abc import Iterable

import torch
from torch import Tensor

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.source import Source
from model.checkpoints.tensors import State


def check_values(tensors: State, used: Iterable[str], source: Source) -> None:
    """`used` are the names of those that the network gets. Raises CheckpointError with the name, as in the file, of one
    that is not float32, or has a NaN or an infinite number.
    """
    weights = {name: tensors[name] for name in used if name in tensors}
    for name, tensor in weights.items():
        if tensor.dtype != torch.float32:
            raise CheckpointError(
                f"{source.file.name} has numbers of the type {str(tensor.dtype).removeprefix('torch.')} in "
                f"{source.names_in_file.get(name, name)}: save it with floating-point numbers"
            )
    if not (broken := _broken(weights)):
        return
    names = [source.names_in_file.get(name, name) for name in _broken(source.tensors())] or broken
    more = f" and in {len(names) - 1} more tensors" if names[1:] else ""
    raise CheckpointError(
        f"{source.file.name} has NaN or infinite numbers in {names[0]}{more}. Training has diverged, or float16 was "
        "too small for it: take an earlier checkpoint, or train again in float32 or bfloat16"
    )


def _broken(tensors: State) -> list[str]:
    return [name for name, tensor in tensors.items() if tensor.dtype == torch.float32 and not _is_finite(tensor)]


def _is_finite(tensor: Tensor) -> bool:
    """A sum takes no memory. It is not finite if a number is not; if it only overflows, each number is looked at."""
    return bool(tensor.sum().isfinite() or tensor.isfinite().all())
