"""Steps that several families share on the way from a file's tensors to the network's.

Layers that libraries have renamed over the years, and learned position tables that have slots (rows) for the tokens
before the patches.
"""

from collections.abc import Iterable
from math import isqrt, prod

import torch
from torch import Tensor

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.source import Source
from model.config import ViTConfig
from model.positions import Grid, resize_positions


def take_layer(source: Source, ours: str, theirs: Iterable[str], *, place: str = "") -> dict[str, Tensor]:
    """Weight and, if there is one, bias of the first of the names in `theirs` that the file has after `place`.

    Names in one string, separated by blanks, are stacked in that order. If some of them have a bias, the biases of the
    others are zeros.
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
    """The first name that the file has. If it has none, the first of all, so that taking it raises CheckpointError."""
    names = list(names)
    return next((name for name in names if place + name.split()[0] + leaf in source), names[0])


def square_grid(rows: int, *, most_slots: int) -> Grid:
    """Grid of the patches in a table of `rows` rows, at most `most_slots` of which are slots.

    Raises CheckpointError if no number of slots leaves a square.
    """
    for slots in range(most_slots + 1):
        side = isqrt(max(rows - slots, 0))
        if side and side * side == rows - slots:
            return side, side
    raise CheckpointError(f"a table of {rows} positions does not fit a square grid of patches")


def without_slots(table: Tensor, prefix: dict[str, Tensor], grid: Grid, config: ViTConfig) -> dict[str, Tensor]:
    """`pos_embed` of the patches alone, in the grid of `config`, and each token with its own position added.

    `table` is (1, slots + rows * columns, D); the tokens of `prefix` are (1, n, D), in the order of their slots. The
    last tokens may have none.
    """
    slots, patches = table.tensor_split([table.shape[1] - prod(grid)], dim=1)
    tokens = {}
    for name, token in prefix.items():
        own, slots = slots.tensor_split([token.shape[1]], dim=1)
        tokens[name] = token + own if own.shape[1] else token
    return {**tokens, "pos_embed": resize_positions(patches, grid, config.grid, config.position_resize)}
