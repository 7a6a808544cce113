"""The text tower of CLIP and SigLIP: tokens of a text to its vector in the space of the images.

CLIP: openai/CLIP model.py `encode_text`, open_clip/transformer.py `TextTransformer`. SigLIP: transformers'
modeling_siglip.py. In shapes: B texts, T tokens, D width, F features.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from model.mlp import ACTIVATIONS


@dataclass(frozen=True, kw_only=True)
class TextConfig:
    vocabulary: int
    length: int  # most tokens of a text
    width: int
    depth: int
    heads: int
    mlp_dim: int
    features: int
    activation: str
    norm_eps: float
    causal: bool  # a token sees those before it alone
    projection_bias: bool
    pool: Literal["end", "largest", "last"]  # the first token that is `end`, that with the largest id, the last one
    end: int = 0  # id of the token that ends a text
    hides_padding: bool = False  # tokens after the end are not seen


class TextBlock(nn.Module):
    """Pre-norm attention and MLP."""

    def __init__(self, config: TextConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.activation = ACTIVATIONS[config.activation]
        self.norm1 = nn.LayerNorm(config.width, eps=config.norm_eps)
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.proj = nn.Linear(config.width, config.width)
        self.norm2 = nn.LayerNorm(config.width, eps=config.norm_eps)
        self.fc1 = nn.Linear(config.width, config.mlp_dim)
        self.fc2 = nn.Linear(config.mlp_dim, config.width)

    def forward(self, x: Tensor, seen: Tensor | None) -> Tensor:
        """`x` is (B, T, D); `seen` is (B or 1, 1, T or 1, T), True where a token sees another."""
        parts = self.qkv(self.norm1(x)).chunk(3, -1)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)  # (B, heads, T, d)
        scores = q * q.shape[-1] ** -0.5 @ k.transpose(-2, -1)
        if seen is not None:
            scores = scores.masked_fill(~seen, torch.finfo(scores.dtype).min)
        x = x + self.proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        out: Tensor = x + self.fc2(self.activation(self.fc1(self.norm2(x))))
        return out


class TextTower(nn.Module):
    def __init__(self, config: TextConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocabulary, config.width)
        self.positions = nn.Parameter(torch.zeros(config.length, config.width))
        self.blocks = nn.ModuleList(TextBlock(config) for _ in range(config.depth))
        self.norm = nn.LayerNorm(config.width, eps=config.norm_eps)
        self.head = nn.Linear(config.width, config.features, bias=config.projection_bias)

    def forward(self, input_ids: Tensor) -> Tensor:
        """Ids of tokens, int64 (B, T), to vectors of length 1, (B, F)."""
        tokens = self.embed(input_ids) + self.positions[: input_ids.shape[1]]
        seen = self._seen(input_ids)
        for block in self.blocks:
            tokens = block(tokens, seen)
        vector = self.head(self._pooled(self.norm(tokens), input_ids))
        out: Tensor = vector / vector.norm(dim=-1, keepdim=True)
        return out

    def _seen(self, input_ids: Tensor) -> Tensor | None:
        if self.config.causal:
            places = torch.arange(input_ids.shape[1], device=input_ids.device)
            return (places.unsqueeze(0) <= places.unsqueeze(1)).unsqueeze(0).unsqueeze(0)
        if self.config.hides_padding:
            ends = (input_ids == self.config.end).long()
            return (ends.cumsum(1) - ends == 0).unsqueeze(1).unsqueeze(1)
        return None

    def _pooled(self, tokens: Tensor, input_ids: Tensor) -> Tensor:
        """(B, D)."""
        if self.config.pool == "last":
            return tokens[:, -1]
        marked = input_ids if self.config.pool == "largest" else (input_ids == self.config.end).long()
        place = marked.argmax(-1).unsqueeze(-1).unsqueeze(-1)
        return tokens.gather(1, place.expand(-1, 1, tokens.shape[-1])).squeeze(1)
