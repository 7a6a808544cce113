"""Attention pooling: a learned query instead of a class token."""

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.config import ViTConfig
from model.mlp import Mlp
from model.norm import norm_layer


class AttentionPool(nn.Module):
    """Tokens (B, N, D) to one vector (B, D): big_vision `models/vit.py` MAPHead, timm AttentionPoolLatent, SigLIP."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        width = config.width
        self.heads = config.pool_heads or config.heads
        self.latent = nn.Parameter(torch.zeros(1, 1, width))
        self.q = nn.Linear(width, width)
        self.kv = nn.Linear(width, 2 * width)
        self.proj = nn.Linear(width, width)
        self.norm = norm_layer(config, width)
        self.mlp = Mlp(replace(config, mlp_dim=config.pool_mlp_dim or config.mlp_dim))

    def forward(self, tokens: Tensor) -> Tensor:
        pooled: Tensor = self.proj(self.mixed(tokens))
        return pooled + self.mlp(self.norm(pooled))

    def mixed(self, tokens: Tensor) -> Tensor:
        """The values weighted by the attention of the learned query, heads side by side, (B, D)."""
        q, k, v = self._heads(tokens)
        return F.scaled_dot_product_attention(q, k, v).flatten(1)

    def weights(self, tokens: Tensor) -> Tensor:
        """Attention of the learned query after softmax, (B, H, 1, N)."""
        q, k, _ = self._heads(tokens)
        return (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(dim=-1)

    def _heads(self, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q = self.q(self.latent).unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (1, H, 1, d)
        k, v = self.kv(tokens).unflatten(-1, (2, self.heads, -1)).permute(2, 0, 3, 1, 4)  # each (B, H, N, d)
        return q.expand(tokens.shape[0], -1, -1, -1), k, v
