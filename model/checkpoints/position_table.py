"""Learned position tables as files have them: rows for tokens of the prefix first, then one for each patch."""

from math import isqrt, prod

import torch
from torch import Tensor

from model.checkpoints.checkpoint import CheckpointError
from model.config import ViTConfig
from model.positions import Grid, resize_positions


def square_grid(rows: int, *, most_slots: int) -> Grid:
    """Grid of a table's patches, of which at most `most_slots` rows are no part. Raises CheckpointError."""
    for slots in range(most_slots + 1):
        side = isqrt(max(rows - slots, 0))
        if side and side * side == rows - slots:
            return side, side
    raise CheckpointError(f"a table of {rows} positions is of no square grid of patches")


def without_slots(table: Tensor, prefix: dict[str, Tensor], grid: Grid, config: ViTConfig) -> dict[str, Tensor]:
    """`pos_embed` of the patches alone, in the grid of `config`, and each token with its own position added.

    `table` is (1, slots + rows * columns, D), the tokens of `prefix` (1, 1, D) in the order of their slots.
    """
    slots, patches = table.tensor_split([table.shape[1] - prod(grid)], dim=1)
    own = torch.nn.functional.pad(slots, (0, 0, 0, max(len(prefix) - slots.shape[1], 0)))
    tokens = {name: token + own[:, i : i + 1] for i, (name, token) in enumerate(prefix.items())}
    return {**tokens, "pos_embed": resize_positions(patches, grid, config.grid, config.position_resize)}
