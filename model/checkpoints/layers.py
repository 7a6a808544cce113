"""Layers of a file whose libraries have named them differently over the years."""

from collections.abc import Iterable

import torch
from torch import Tensor

from model.checkpoints.source import Source


def take_layer(source: Source, ours: str, theirs: Iterable[str], *, place: str = "") -> dict[str, Tensor]:
    """Weight and, where there is one, bias of the first of the names that the file has after `place`.

    Names in one string, separated by blanks, are stacked; there, a bias that is missing beside others is zero.
    """
    names = [place + name for name in first_present(source, theirs, place=place, leaf=".weight").split()]
    weights = [source.take(f"{name}.weight") for name in names]
    layer = {f"{ours}.weight": torch.cat(weights)}
    if any(f"{name}.bias" in source for name in names):
        biases = [source.take(f"{name}.bias") if f"{name}.bias" in source else None for name in names]
        layer[f"{ours}.bias"] = torch.cat(
            [
                weight.new_zeros(len(weight)) if bias is None else bias
                for weight, bias in zip(weights, biases, strict=True)
            ]
        )
    return layer


def first_present(source: Source, names: Iterable[str], *, place: str = "", leaf: str = "") -> str:
    """The first that the file has, or the first at all: whoever takes that says that it is missing."""
    names = list(names)
    return next((name for name in names if place + name.split()[0] + leaf in source), names[0])
