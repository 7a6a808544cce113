"""Position embeddings for another number of patches."""

import torch.nn.functional as F
from torch import Tensor

from model.config import ViTConfig
from model.vit import VisionTransformer


def resize_positions(positions: Tensor, old: tuple[int, int], new: tuple[int, int]) -> Tensor:
    """Interpolate (1, rows * columns, D) from one grid of (rows, columns) to another.

    Antialiased bicubic in float32, as timm does for torch checkpoints (`layers/pos_embed.py`).
    """
    if old == new:
        return positions
    table = positions.reshape(1, *old, -1).permute(0, 3, 1, 2).float()
    table = F.interpolate(table, size=new, mode="bicubic", antialias=True, align_corners=False)
    return table.permute(0, 2, 3, 1).flatten(1, 2).to(positions.dtype)


def resize(model: VisionTransformer, image_size: tuple[int, int]) -> VisionTransformer:
    """The same network for pictures of (height, width), with interpolated positions (paper, section 3.2)."""
    config: ViTConfig = model.config.resized(image_size)
    resized = VisionTransformer(config)
    state = model.state_dict()
    state["pos_embed"] = resize_positions(state["pos_embed"], model.config.grid, config.grid)
    resized.load_state_dict(state)
    return resized.train(model.training)
