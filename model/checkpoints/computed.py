"""Weights that PyTorch computes of other tensors: those of weight norm as it does, others are refused by name."""

import re
from collections.abc import Iterable, Mapping
from functools import partial

import torch
from torch import Tensor

from model.checkpoints.foreign import is_plain
from model.checkpoints.weights import Stored

# The direction, the length beside it and the weight, of torch.nn.utils.parametrizations.weight_norm, and of the older
# torch.nn.utils.weight_norm.
NORMED = (
    (r"(.*\.|)parametrizations\.(\w*weight)\.original1", r"\1parametrizations.\2.original0", r"\1\2"),
    (r"(.*weight)_v", r"\1_g", r"\1"),
)
# Of other parametrizations, spectral norm and pruning.
COMPUTED = re.compile(r"(^|\.)parametrizations\.|weight_(g|v|u|orig|mask)$")


def whole(state: Mapping[str, Stored]) -> dict[str, Stored]:
    """The state dict with one `weight` in place of the two tensors of each weight norm, over any of its axes."""
    joined = dict(state)
    for name, direction in state.items():
        for pattern, other, weight in NORMED:
            if not (match := re.fullmatch(pattern, name)):
                continue
            beside, ours = match.expand(other), match.expand(weight)
            if beside in state and ours not in state and _is_length_of(state[beside], direction):
                del joined[name], joined[beside]
                joined[ours] = Stored(direction.shape, "float32", partial(_normed, state[beside], direction))
    return joined


def refusal(names: Iterable[str]) -> str:
    """What to do about the first of these tensors that is a part of another weight; empty if none is."""
    if not (computed := next((name for name in names if COMPUTED.search(name)), "")):
        return ""
    return (
        f"{computed} is part of a weight that PyTorch computes: save the model after remove_parametrizations, "
        "remove_spectral_norm or prune.remove"
    )


def _is_length_of(length: Stored, direction: Stored) -> bool:
    """Whether each axis is whole or one; weight norm without an axis has a single number."""
    axes = zip(length.shape, direction.shape, strict=False)
    fits = len(length.shape) in (0, len(direction.shape)) and all(one in (1, side) for one, side in axes)
    return fits and is_plain(length.dtype) and is_plain(direction.dtype)


def _normed(length: Stored, direction: Stored) -> Tensor:
    """g * v / ||v||, as torch._weight_norm."""
    g, v = length.read().float(), direction.read().float()
    axes = [axis for axis in range(v.ndim) if not g.ndim or g.shape[axis] == 1]
    return v * (g / torch.linalg.vector_norm(v, dim=axes, keepdim=True))
