"""Positions for another number of patches. Libraries interpolate differently, and the logits depend on it."""

from dataclasses import replace
from math import prod
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from model.config import PositionResize, ViTConfig
from model.vit import VisionTransformer

Grid = tuple[int, int]  # (rows, columns)

INTERPOLATION: dict[PositionResize, dict[str, Any]] = {
    "bicubic_antialias": {"mode": "bicubic", "antialias": True},
    "bicubic": {"mode": "bicubic"},
    "bicubic_corners": {"mode": "bicubic", "align_corners": True},
    "bicubic_offset": {"mode": "bicubic"},
    "bilinear": {"mode": "bilinear"},
    "bilinear_corners": {"mode": "bilinear", "align_corners": True},
}
OFFSET = 0.1  # DINO `vision_transformer.py`: against a rounding error; it shifts every sample a little


def resize_positions(positions: Tensor, old: Grid, new: Grid, method: PositionResize) -> Tensor:
    """Interpolate float32 (1, rows * columns, D) from one grid to another.

    Raises ValueError for a method that is for relative biases alone, and for a table of another grid.
    """
    if old == new:
        return positions
    if positions.shape[1] != prod(old):
        raise ValueError(f"a table of {positions.shape[1]} positions does not fit {old[0]} by {old[1]} patches")
    if method not in INTERPOLATION:
        raise ValueError(f"positions of this kind ({method}) cannot be interpolated from {old} to {new} patches")
    table = positions.reshape(1, *old, -1).permute(0, 3, 1, 2)  # (1, D, rows, columns)
    target: dict[str, Any] = {"size": new}
    if method == "bicubic_offset":
        target = {"scale_factor": tuple((n + OFFSET) / m for n, m in zip(new, old, strict=True))}
    table = F.interpolate(table, **target, **INTERPOLATION[method])
    return table.permute(0, 2, 3, 1).flatten(1, 2)


def resize_relative_bias(table: Tensor, old: Grid, new: Grid, method: PositionResize) -> Tensor:
    """Interpolate a table (offsets, H) of relative biases. The last rows, of the class token, stay as they are."""
    (old_rows, old_columns), (rows, columns) = ((2 * down - 1, 2 * across - 1) for down, across in (old, new))
    if len(table) < old_rows * old_columns:
        raise ValueError(f"a table of {len(table)} biases does not fit {old_rows} by {old_columns} offsets")
    offsets, of_class_token = table.tensor_split([old_rows * old_columns])
    if method == "geometric" and old != new:
        down, across = geometric_weights(old_rows, rows), geometric_weights(old_columns, columns)
        square = offsets.unflatten(0, (old_rows, old_columns))  # (rows, columns, H)
        square = torch.einsum("rs,sth,ct->rch", down, square, across)
        return torch.cat([square.flatten(0, 1), of_class_token])
    resized = resize_positions(offsets.unsqueeze(0), (old_rows, old_columns), (rows, columns), method)
    return torch.cat([resized.squeeze(0), of_class_token])


def geometric_weights(old: int, new: int) -> Tensor:
    """Linear interpolation from `old` to `new` offsets along one side, (new, old): BEiT `run_class_finetuning.py`.

    New offsets are one apart; the steps between old ones grow by a constant factor so that both end together. Near
    offsets thus keep their bias. The factor is bisected as in timm's layers/pos_embed_rel.py.
    """
    low, high = 1.01, 1.5
    while high - low > 1e-6:
        factor = (low + high) / 2
        low, high = (low, factor) if (1 - factor ** (old // 2)) / (1 - factor) > new // 2 else (factor, high)
    steps = torch.tensor([0, *(factor**i for i in range(old // 2))], dtype=torch.double).cumsum(0)
    places = torch.cat([-steps.flip(0)[:-1], steps]).float()  # (old,)
    offsets = torch.arange(-(new // 2), new // 2 + 1, dtype=torch.float32)
    right = torch.searchsorted(places, offsets).clamp(1, old - 1)
    share = ((offsets - places[right - 1]) / (places[right] - places[right - 1])).clamp(0, 1)
    weights = torch.zeros(new, old)
    weights[torch.arange(new), right - 1], weights[torch.arange(new), right] = 1 - share, share
    return weights


def resize(model: VisionTransformer, image_size: tuple[int, int]) -> VisionTransformer:
    """The same network for images of (height, width), with interpolated positions (paper, section 3.2).

    The `position_resize` of the model selects the interpolation; fixed positions are computed anew.
    """
    resized = VisionTransformer(replace(model.config, image_size=image_size))
    state = model.state_dict()
    resize_tables(state, model.config.grid, resized.config)
    resized.load_state_dict(state)
    return resized.train(model.training)


def resize_tables(state: dict[str, Tensor], old: Grid, config: ViTConfig) -> None:
    """Interpolate the tables of positions among a network's tensors, in place, to the grid of `config`."""
    (old_rows, old_columns), (rows, columns) = old, new = old, config.grid
    axes = {"pos_embed_x": ((1, old_columns), (1, columns)), "pos_embed_y": ((old_rows, 1), (rows, 1))}
    grids = {"pos_embed": (old, new), **axes}
    for name, table in state.items():
        if name in grids:
            state[name] = resize_positions(table, *grids[name], config.position_resize)
        elif name.endswith("relative_position_bias_table"):
            state[name] = resize_relative_bias(table, old, new, config.position_resize)
