"""The similarity of the positions of two patches (paper, Fig. 7 centre)."""

import math

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from app.drawing.colors import Limits
from export.pictures.picture import Picture, sheet, viridis
from model.rope import Rope
from model.vit import VisionTransformer

MOST_TILES = 16  # a side; of a larger grid every n-th patch is shown
SHEET_PX = 900
DECIMALS = 4


def positions(model: VisionTransformer) -> Picture | None:
    """A tile for each patch: the cosine similarity of its position embedding to all; None without positions.

    Rotary positions alone are compared by the mean cosine of the differences of their angles: how alike a query and a
    key remain when they are turned as the two patches are.
    """
    learned, turned = model.positions(), rotary(model)
    if learned is not None:
        table, title = learned[0], "Similarity of position embeddings"
    elif turned is not None:
        table, title = turned, "Similarity of rotary positions"
    else:
        return None
    rows, columns = grid = model.config.grid
    similarity = cosine_similarity(table.detach().double().numpy())
    shown_rows, shown_columns = shown(rows), shown(columns)
    patches = [row * columns + column for row in shown_rows for column in shown_columns]
    limits = Limits(-1, 1)
    what = "Each patch" if len(patches) == rows * columns else f"{len(patches)} of {rows * columns} patches, each"
    png = sheet(
        title,
        f"{what} against all {rows} x {columns}.",
        [viridis(similarity[patch].reshape(grid), limits) for patch in patches],
        columns=len(shown_columns),
        zoom=max(1, SHEET_PX // max(len(shown_rows) * rows, len(shown_columns) * columns)),
        axes=(shown_rows, shown_columns),
        bar=("Cosine similarity", limits),
    )
    numbers = {
        "grid": grid,
        "patches": [divmod(patch, columns) for patch in patches],
        "similarity": similarity[patches].round(DECIMALS).tolist(),
    }
    return Picture(name="positions", title=title, png=png, numbers=numbers)


def rotary(model: VisionTransformer) -> Tensor | None:
    """Cosines and sines of every angle of each patch, in all layers if they are learned, (N, 2 * angles)."""
    if model.config.rope is None:
        return None
    learned = model.config.rope.kind == "learned"
    ropes = [block.get_submodule("attn.rope") for block in (model.blocks if learned else model.blocks[:1])]
    tables = [table for rope in ropes if isinstance(rope, Rope) for table in rope.tables()]  # each (..., T, d/2)
    by_patch = [table.movedim(-2, 0).flatten(1) for table in tables]
    return torch.cat(by_patch, dim=1)[len(model.config.prefix) :]


def cosine_similarity(table: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """(N, N) of vectors (N, D); the similarity of a vector of zeros is 0 to all vectors, itself included."""
    length = np.linalg.norm(table, axis=1, keepdims=True)
    unit = table / np.where(length > 0, length, 1.0)
    return unit @ unit.T


def shown(side: int) -> range:
    """Every n-th of `side` patches: at most 16, evenly spread."""
    step = math.ceil(side / MOST_TILES)
    return range((step - 1) // 2, side, step)
