"""Rotary positions (RoPE, arXiv 2104.09864): queries and keys are turned by angles that depend on the patch's place.

Attention then depends on how far apart two patches are. timm 1.0.31 `layers/pos_embed_sincos.py`, in its order of
operations: RotaryEmbeddingCat, RotaryEmbeddingDinoV3, RotaryEmbeddingMixed.
In shapes: B batch, N patches, T tokens, H heads, d width of a head; d/2 pairs of channels are turned.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.config import RopeConfig, ViTConfig


class Rope(nn.Module):
    """Turns the queries or the keys (B, H, T, d) of one layer. Tokens before the patches are not turned."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        assert config.rope is not None
        self.config, self.prefix = config.rope, len(config.prefix)
        width = config.attn_width // config.heads
        self.freqs: nn.Parameter | None = None
        if config.rope.kind == "learned":
            self.freqs = nn.Parameter(random_frequencies(config.rope, config.heads, width))
            self.places = nn.Buffer(places(config.rope, config.grid), persistent=False)  # (N, 2)
        else:
            angles = fixed_angles(config.rope, config.grid, width)
            self.cos = nn.Buffer(self._padded(angles).cos(), persistent=False)  # (T, d/2)
            self.sin = nn.Buffer(self._padded(angles).sin(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        cos, sin = self.tables()
        if self.config.pairs == "halves":
            first, second = x.chunk(2, dim=-1)
            across = torch.cat([-second, first], dim=-1)
            cos, sin = (torch.cat([table, table], dim=-1) for table in (cos, sin))
        else:
            across = torch.stack([-x[..., 1::2], x[..., ::2]], dim=-1).flatten(-2)
            cos, sin = (table.repeat_interleave(2, dim=-1) for table in (cos, sin))
        return x * cos + across * sin

    def tables(self) -> tuple[Tensor, Tensor]:
        """Cosine and sine of the angle of each token and pair: (T, d/2) for all heads, or (H, T, d/2) if learned."""
        if self.freqs is None:
            return self.cos, self.sin
        first, second = self.freqs.unsqueeze(-2)  # each (H, 1, d/2)
        angles = self._padded(self.places[:, :1] * first + self.places[:, 1:] * second)
        return angles.cos(), angles.sin()

    def _padded(self, angles: Tensor) -> Tensor:
        """The angles, with 0 for the prefix."""
        return F.pad(angles, (0, 0, self.prefix, 0))


def places(config: RopeConfig, grid: tuple[int, int]) -> Tensor:
    """Coordinates of every patch, (N, 2), in the order of the config's axes."""
    sides = grid if config.axes == "yx" else grid[::-1]
    if config.kind == "centered":
        along = [(torch.arange(0.5, side) + config.offset) / side for side in sides]
    else:
        along = [torch.arange(side).float() + config.offset for side in sides]
    if config.reference is not None:
        old = config.reference if config.axes == "yx" else config.reference[::-1]
        along = [at / side * of_old for at, side, of_old in zip(along, sides, old, strict=True)]
    indexing = "ij" if config.axes == "yx" else "xy"
    coordinates = torch.stack(torch.meshgrid(along, indexing=indexing), dim=-1).flatten(0, 1)
    return 2.0 * coordinates - 1.0 if config.kind == "centered" else coordinates


def fixed_angles(config: RopeConfig, grid: tuple[int, int], width: int) -> Tensor:
    """Angle of every patch and pair, (N, d/2): the first half of the pairs turns by the first coordinate."""
    at = places(config, grid).unsqueeze(-1)  # (N, 2, 1)
    count = width // 4
    if config.kind == "centered":
        periods = config.temperature ** (2.0 * torch.arange(count).float() / (width // 2))
        return (2 * math.pi * at / periods).flatten(1)
    frequencies = 1.0 / config.temperature ** (torch.arange(count).float() / count)
    return (at * frequencies).flatten(1)


def random_frequencies(config: RopeConfig, heads: int, width: int) -> Tensor:
    """Frequencies along both axes to begin training with, (2, H, d/2): RoPE-mixed (arXiv 2403.13298).

    Each head has two directions at right angles, turned at random.
    """
    magnitudes = 1.0 / config.temperature ** (torch.arange(0, width, 4).float() / width)  # (d/4,)
    directions = torch.rand(heads, 1) * 2 * math.pi + torch.tensor([0.0, math.pi / 2])  # (H, 2)
    along = torch.stack([directions.cos(), directions.sin()])  # (2, H, 2)
    return (along.unsqueeze(-1) * magnitudes).flatten(2)
