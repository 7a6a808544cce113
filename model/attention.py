"""Multi-head self-attention (paper, appendix A) with the switches of CLIP's, BEiT's and timm's descendants."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.config import ViTConfig
from model.norm import norm_layer
from model.rope import Rope


class Attention(nn.Module):
    """Tokens (B, T, D) to tokens (B, T, D). In shapes: H heads of width d."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        width, inner = config.width, config.attn_width
        self.heads = config.heads
        self.qkv = nn.Linear(width, 3 * inner, bias=config.qkv_bias)
        self.q_norm = norm_layer(config, inner // config.heads) if config.qk_norm else nn.Identity()
        self.k_norm = norm_layer(config, inner // config.heads) if config.qk_norm else nn.Identity()
        self.rope = nn.Identity() if config.rope is None else Rope(config)
        self.norm = norm_layer(config, inner) if config.inner_norm else nn.Identity()
        self.proj = nn.Linear(inner, width) if config.attn_proj else nn.Identity()
        self.relative_position_bias_table: nn.Parameter | None = None
        if config.relative_bias:
            rows, columns = config.grid
            entries = (2 * rows - 1) * (2 * columns - 1) + 3 * config.class_token
            self.relative_position_bias_table = nn.Parameter(torch.zeros(entries, config.heads))
            index = relative_position_index(config.grid, class_token=config.class_token)
            self.relative_position_index = nn.Buffer(index, persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        q, k, v = self._heads(tokens)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=self.bias())  # (B, H, T, d)
        return self.proj(self.norm(mixed.transpose(1, 2).flatten(2)))

    def weights(self, tokens: Tensor) -> Tensor:
        """Attention after softmax, (B, H, T, T): entry [i, j] is how much token i reads from token j."""
        q, k, _ = self._heads(tokens)
        scores: Tensor = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
        bias = self.bias()
        return (scores if bias is None else scores + bias).softmax(dim=-1)

    def bias(self) -> Tensor | None:
        """The bias that is added to the scores, (1, H, T, T), or None."""
        if self.relative_position_bias_table is None:
            return None
        return self.relative_position_bias_table[self.relative_position_index].permute(2, 0, 1).unsqueeze(0)

    def _heads(self, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = self.qkv(tokens).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self.rope(self.q_norm(q)), self.rope(self.k_norm(k)), v  # each (B, H, T, d)


def relative_position_index(grid: tuple[int, int], *, class_token: bool) -> Tensor:
    """Row of the bias table for every query and key, (T, T): BEiT, arXiv 2106.08254; timm `layers/pos_embed_rel.py`.

    The first (2 rows - 1) * (2 columns - 1) rows are for the offsets between patches, query minus key. With a class
    token three more follow: it is the query, it is the key, it is both.
    """
    rows, columns = grid
    place = torch.cartesian_prod(torch.arange(rows), torch.arange(columns))  # (N, 2)
    down, across = (place[:, None] - place[None, :]).unbind(-1)  # each (N, N)
    index = (down + rows - 1) * (2 * columns - 1) + across + columns - 1
    if class_token:
        offsets = (2 * rows - 1) * (2 * columns - 1)
        index = F.pad(index, (1, 0, 1, 0))
        index[0, :], index[:, 0], index[0, 0] = offsets, offsets + 1, offsets + 2
    return index
