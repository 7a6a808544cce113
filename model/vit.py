"""The Vision Transformer of "An Image is Worth 16x16 Words" (arXiv 2010.11929, section 3.1) in plain PyTorch.

Parameter names follow the timm / DeiT / DINO line, so that those checkpoints load without a rename.
Knows neither files, nor ONNX, nor HTTP. In shapes: B batch, T tokens, D width, H heads, C classes.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.config import ViTConfig

LAYER_NORM_EPS = 1e-6  # flax, timm, torchvision, DINO


class PatchEmbed(nn.Module):
    """Cuts the picture into patches and projects each of them linearly."""

    def __init__(self, *, patch_size: int, width: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(3, width, kernel_size=patch_size, stride=patch_size)

    def forward(self, images: Tensor) -> Tensor:
        patches: Tensor = self.proj(images)  # (B, D, rows, columns)
        return patches.flatten(2).transpose(1, 2)  # (B, rows * columns, D)


class Attention(nn.Module):
    """Multi-head self-attention (paper, appendix A)."""

    def __init__(self, *, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        q, k, v = self._heads(tokens)
        mixed = F.scaled_dot_product_attention(q, k, v)  # (B, H, T, D/H)
        out: Tensor = self.proj(mixed.transpose(1, 2).flatten(2))
        return out

    def weights(self, tokens: Tensor) -> Tensor:
        """Attention after softmax, (B, H, T, T): entry [i, j] is how much token i reads from token j."""
        q, k, _ = self._heads(tokens)
        scores: Tensor = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
        return scores.softmax(dim=-1)

    def _heads(self, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        b, t, d = tokens.shape
        q, k, v = self.qkv(tokens).reshape(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        return q, k, v  # each (B, H, T, D/H)


class Mlp(nn.Module):
    """Two linear layers with GELU between them, applied to each token."""

    def __init__(self, *, width: int, hidden: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, hidden)
        self.fc2 = nn.Linear(hidden, width)

    def forward(self, tokens: Tensor) -> Tensor:
        out: Tensor = self.fc2(F.gelu(self.fc1(tokens)))
        return out


class Block(nn.Module):
    """A pre-norm encoder block (paper, equations 2 and 3)."""

    def __init__(self, *, width: int, heads: int, mlp_dim: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=LAYER_NORM_EPS)
        self.attn = Attention(width=width, heads=heads)
        self.norm2 = nn.LayerNorm(width, eps=LAYER_NORM_EPS)
        self.mlp = Mlp(width=width, hidden=mlp_dim)

    def forward(self, tokens: Tensor) -> Tensor:
        tokens = tokens + self.attn(self.norm1(tokens))
        out: Tensor = tokens + self.mlp(self.norm2(tokens))
        return out


class VisionTransformer(nn.Module):
    """Normalised float pictures (B, 3, height, width) to logits (B, C)."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.config = config
        rows, columns = config.grid
        features = config.representation_size or config.width
        self.patch_embed = PatchEmbed(patch_size=config.patch_size, width=config.width)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, config.width)) if config.class_token else None
        # Positions of the patches alone: the class token's own position is a constant and lives in cls_token.
        self.pos_embed = nn.Parameter(torch.zeros(1, rows * columns, config.width))
        self.blocks = nn.ModuleList(
            Block(width=config.width, heads=config.heads, mlp_dim=config.mlp_dim) for _ in range(config.depth)
        )
        self.norm = nn.LayerNorm(config.width, eps=LAYER_NORM_EPS)
        self.pre_logits = nn.Linear(config.width, features) if config.representation_size else None
        self.head = nn.Linear(features, config.num_classes)
        self.init_weights()

    def init_weights(self) -> None:
        """Truncated normal of 0.02 for every matrix, zero for every bias."""
        for parameter in (self.pos_embed, self.cls_token):
            if parameter is not None:
                nn.init.trunc_normal_(parameter, std=0.02)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Conv2d):
                nn.init.trunc_normal_(module.weight, std=0.02)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, images: Tensor) -> Tensor:
        return self.classify(self.encode(images))

    def embed(self, images: Tensor) -> Tensor:
        """Tokens that enter the first block, (B, T, D)."""
        tokens: Tensor = self.patch_embed(images) + self.pos_embed
        if self.cls_token is not None:
            tokens = torch.cat([self.cls_token.expand(tokens.shape[0], -1, -1), tokens], dim=1)
        return tokens

    def encode(self, images: Tensor) -> Tensor:
        """Tokens after the final norm, (B, T, D)."""
        tokens = self.embed(images)
        for block in self.blocks:
            tokens = block(tokens)
        normed: Tensor = self.norm(tokens)
        return normed

    def classify(self, tokens: Tensor) -> Tensor:
        """Logits (B, C) of normed tokens (B, T, D)."""
        pooled = tokens[:, 0] if self.config.pool == "cls" else tokens[:, len(self.config.prefix) :].mean(dim=1)
        if self.pre_logits is not None:
            pooled = torch.tanh(self.pre_logits(pooled))
        logits: Tensor = self.head(pooled)
        return logits

    def attentions(self, images: Tensor) -> Tensor:
        """Every attention matrix after softmax, (B, L, H, T, T)."""
        tokens = self.embed(images)
        matrices = []
        for block in self.blocks:
            assert isinstance(block, Block)
            matrices.append(block.attn.weights(block.norm1(tokens)))
            tokens = block(tokens)
        return torch.stack(matrices, dim=1)
