"""Positions as timm saves them: tables of any size with slots for the prefix, several forms of relative ones, and
frequencies of rotary ones."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.source import Source
from model.checkpoints.tensors import State, fit_positions
from model.config import ViTConfig
from model.positions import Grid, resize_relative_bias

LEARNED = "pos_embed"
RELATIVE = "relative_position_bias_table"


def slots(arguments: dict[str, Any], config: ViTConfig) -> int:
    """Rows of a table of positions that are for tokens before the patches: for all of them, or for none."""
    return 0 if arguments.get("no_embed_class") else len(config.prefix)


def grid_of_file(source: Source, config: ViTConfig, slots: int) -> Grid | None:
    """Rows and columns of patches in the tables of a file; None if it has no table."""
    if LEARNED in source:
        return _grid(source.shape(LEARNED)[1] - slots, config)
    tables = [key for key in source.names if key.endswith(RELATIVE)]
    return _relative_grid(source.shape(tables[0])[0], config) if tables else None


def positions(state: State, config: ViTConfig, slots: int) -> None:
    """Add the slots of the prefix to its tokens, and interpolate the rest if the file is for another size."""
    if LEARNED in state:
        fit_positions(state, config, _grid(state[LEARNED].shape[1] - slots, config))


def relative_tables(state: State, config: ViTConfig) -> None:
    """A table of biases for each block: its own, the file's table for all blocks, or one that an MLP computes."""
    if not config.relative_bias:
        return
    for i in range(config.depth):
        target = f"blocks.{i}.attn.{RELATIVE}"
        for origin in (f"blocks.{i}.attn.", f"blocks.{i}.attn.rel_pos.", "rel_pos_bias.", "shared_rel_pos."):
            if origin + RELATIVE in state:
                table = state[origin + RELATIVE]
                grid = _relative_grid(table.shape[0], config)
                state[target] = resize_relative_bias(table, grid, config.grid, config.position_resize)
            elif f"{origin}mlp.fc1.weight" in state:
                state[target] = log_offset_bias(state, f"{origin}mlp.", config)
    for key in [key for key in state if "rel_pos" in key]:
        del state[key]


def log_offset_bias(state: State, mlp: str, config: ViTConfig) -> Tensor:
    """timm's RelPosMlp (layers/pos_embed_rel.py, mode "cr") for every offset, (offsets, H).

    The class token, where there is one, has no bias.
    """
    rows, columns = (torch.arange(1 - side, side, dtype=torch.float32) for side in config.grid)
    offsets = torch.cartesian_prod(rows, columns)
    logarithms = offsets.sign() * (1 + offsets.abs()).log()
    hidden = F.relu(F.linear(logarithms, state[f"{mlp}fc1.weight"], state[f"{mlp}fc1.bias"]))
    table = F.linear(hidden, state[f"{mlp}fc2.weight"], state[f"{mlp}fc2.bias"])
    return F.pad(table, (0, 0, 0, 3 * config.class_token))


def learned_rope(state: State, config: ViTConfig) -> None:
    """Frequencies of each block: timm's table (2, L, H, d/2) has those of all blocks."""
    if "rope.freqs" in state:
        for i, freqs in enumerate(state.pop("rope.freqs").unbind(1)):
            state[f"blocks.{i}.attn.rope.freqs"] = freqs


def _grid(patches: int, config: ViTConfig) -> Grid:
    """The network's grid, else a square one. Raises CheckpointError if neither has so many patches."""
    rows, columns = config.grid
    side = math.isqrt(max(patches, 0))
    if patches == rows * columns:
        return config.grid
    if side and side**2 == patches:
        return side, side
    raise CheckpointError(
        f"{LEARNED} has positions of {patches} patches, which are neither a square nor {rows} by {columns}"
    )


def _relative_grid(entries: int, config: ViTConfig) -> Grid:
    rows, columns = config.grid
    offsets = entries - 3 * config.class_token
    if offsets == (2 * rows - 1) * (2 * columns - 1):
        return config.grid
    side = math.isqrt(max(offsets, 0))
    if side**2 != offsets or side % 2 == 0:
        raise CheckpointError(f"{RELATIVE} has {entries} entries, which does not fit a square of offsets")
    return (side + 1) // 2, (side + 1) // 2
