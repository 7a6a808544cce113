"""The two kinds of normalisation, the length of 1 before a cosine head, and LayerScale."""

import torch
from torch import Tensor, nn

from model.config import ViTConfig


def norm_layer(config: ViTConfig, width: int) -> nn.LayerNorm | nn.RMSNorm:
    """LayerNorm, or RMSNorm (arXiv 1910.07467) for timm's *_xp_* and AIMv2, over the last dimension."""
    kind = nn.LayerNorm if config.norm == "layer" else nn.RMSNorm
    return kind(width, eps=config.norm_eps)


class UnitNorm(nn.Module):
    """Vectors (..., F) to the same directions with length 1: what CLIP and SigLIP compare with text."""

    def forward(self, vectors: Tensor) -> Tensor:
        return vectors / vectors.norm(dim=-1, keepdim=True)


class LayerScale(nn.Module):
    """A learned factor for each channel of a residual branch (CaiT, arXiv 2103.17239, section 2)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(width))

    def forward(self, tokens: Tensor) -> Tensor:
        return tokens * self.gamma
