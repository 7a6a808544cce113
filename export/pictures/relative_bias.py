"""The bias that relative positions add to attention scores, for BEiT and similar models instead of Fig. 7 centre."""

import numpy as np
import numpy.typing as npt
import torch

from app.drawing.colors import Limits
from export.pictures.picture import Picture, sheet, viridis
from model.attention import Attention
from model.vit import VisionTransformer

COLUMNS = 6
TILE_PX = 112
DECIMALS = 4


def relative_bias(model: VisionTransformer) -> Picture | None:
    """A tile for each layer with the query patch in its middle; None for a model without such a bias."""
    if not model.config.relative_bias:
        return None
    rows, columns = model.config.grid
    bias = biases(model)
    title = "Relative position bias by layer, mean over heads"
    limits = Limits(float(bias.min()), float(bias.max()))
    png = sheet(
        title,
        f"The query patch is in the middle, the patches that it reads are up to {rows - 1} rows and "
        f"{columns - 1} columns away.",
        [viridis(of_layer, limits) for of_layer in bias],
        columns=min(COLUMNS, len(bias)),
        zoom=max(1, round(TILE_PX / max(bias.shape[1:]))),
        captions=[f"layer {layer}" for layer in range(len(bias))],
        bar=("Added to scores", limits),
    )
    numbers = {"grid": (rows, columns), "bias": bias.round(DECIMALS).tolist()}
    return Picture(name="relative_bias", title=title, png=png, numbers=numbers)


def biases(model: VisionTransformer) -> npt.NDArray[np.float64]:
    """Mean over heads, (L, 2 rows - 1, 2 columns - 1).

    [l, rows - 1 + y, columns - 1 + x] is for a patch y rows below and x columns right of the query patch.
    """
    rows, columns = model.config.grid
    down, across = 2 * rows - 1, 2 * columns - 1
    tables = []
    for block in model.blocks:
        attention = block.get_submodule("attn")
        assert isinstance(attention, Attention)
        table = attention.relative_position_bias_table
        assert table is not None
        offsets = table[: down * across].mean(dim=1).unflatten(0, (down, across))  # of query minus key
        tables.append(offsets.flip(0, 1))
    return torch.stack(tables).detach().double().numpy()
