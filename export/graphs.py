"""The network rewritten for serving: the same numbers from fewer operations, as a torch module that exports cleanly.

What differs from model/vit.py, each step exact up to rounding:
- input is 8-bit NHWC; mean, std and 1/255 are folded into the patch projection, which has no padding;
- the patch projection is a reshape and a MatMul; positions and biases are one table;
- Q, K and V are three MatMuls, and attention is ONNX Runtime's fused MultiHeadAttention;
- weights are stored (in, out), so that no Transpose stands before a MatMul;
- where the class token is pooled, the last block computes nothing but the class token.

In shapes: B batch, T tokens, D width, H heads, L layers.
"""

import math
from dataclasses import MISSING, fields
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.attention import Attention
from model.blocks import Block
from model.config import ViTConfig
from model.mlp import Mlp
from model.patch_embed import PatchEmbed
from model.preprocessing import Preprocessing
from model.vit import VisionTransformer

SERVED = {"class_token", "norm_eps", "pool", "position_resize", "representation_size"}  # beside the sizes


def refuse_unserved(config: ViTConfig) -> None:
    """Raises ValueError for a switch of the network that these graphs do not have."""
    switches = [f for f in fields(config) if f.name not in SERVED and f.default is not MISSING]
    unserved = [f.name for f in switches if getattr(config, f.name) != f.default]
    if config.pool not in ("cls", "mean"):
        unserved.append("pool")
    if unserved:
        raise ValueError(f"the serving graph does not know this network's {', '.join(unserved)}")


class Linear(nn.Module):
    """x @ weight + bias with weight (in, out)."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight.detach().contiguous().clone())
        self.bias = None if bias is None else nn.Parameter(bias.detach().contiguous().clone())

    def forward(self, x: Tensor) -> Tensor:
        out = x @ self.weight
        return out if self.bias is None else out + self.bias


def _linear(source: nn.Linear) -> Linear:
    return Linear(source.weight.T, source.bias)


class FoldedPatchEmbed(nn.Module):
    """8-bit pictures to the tokens that enter the first block, positions and class token included."""

    def __init__(self, model: VisionTransformer, preprocessing: Preprocessing) -> None:
        super().__init__()
        config = model.config
        assert isinstance(model.patch_embed, PatchEmbed)
        assert model.pos_embed is not None
        self.patch_size, self.grid = config.patch_size, config.grid
        kernel = model.patch_embed.proj.weight.detach().double()  # (D, 3, patch, patch)
        mean, std = (torch.tensor(v, dtype=torch.double) for v in (preprocessing.mean, preprocessing.std))
        folded = kernel / (255 * std)[:, None, None]
        constant = model.pos_embed.detach().double() - (kernel.sum((2, 3)) * mean / std).sum(1)
        if model.patch_embed.proj.bias is not None:
            constant = constant + model.patch_embed.proj.bias.detach().double()
        self.proj = Linear(folded.permute(2, 3, 1, 0).flatten(0, 2).float(), constant.float())
        self.cls_token = None if model.cls_token is None else nn.Parameter(model.cls_token.detach().clone())

    def forward(self, images: Tensor) -> Tensor:
        (rows, columns), p = self.grid, self.patch_size
        patches = images.reshape(-1, rows, p, columns, p, 3).transpose(2, 3)  # (B, rows, columns, p, p, 3)
        tokens: Tensor = self.proj(patches.reshape(-1, rows * columns, p * p * 3).float())
        if self.cls_token is not None:
            tokens = torch.cat([self.cls_token.expand(images.shape[0], -1, -1), tokens], dim=1)
        return tokens


class Projections(NamedTuple):
    """What an attention layer computes from its input; query is (B, 1, D) where only the class token asks."""

    query: Tensor
    key: Tensor
    value: Tensor


class FusedAttention(nn.Module):
    def __init__(self, source: Attention) -> None:
        super().__init__()
        self.heads = source.heads
        weights, biases = source.qkv.weight.chunk(3), source.qkv.bias.chunk(3)
        self.q, self.k, self.v = (Linear(w.T, b) for w, b in zip(weights, biases, strict=True))
        assert isinstance(source.proj, nn.Linear)
        self.proj = _linear(source.proj)

    def project(self, tokens: Tensor, queries: int | None) -> Projections:
        return Projections(self.q(tokens[:, :queries]), self.k(tokens), self.v(tokens))

    def mix(self, p: Projections) -> Tensor:
        """(B, queries, D): softmax(Q K^T / sqrt(D/H)) V, heads side by side, then the output projection."""
        mixed = torch.onnx.ops.symbolic(
            "com.microsoft::MultiHeadAttention",
            (p.query, p.key, p.value),
            {"num_heads": self.heads},
            dtype=p.query.dtype,
            shape=p.query.shape,
            version=1,
        )
        out: Tensor = self.proj(mixed)
        return out

    def weights(self, p: Projections) -> Tensor:
        """Attention after softmax (B, H, queries, T), beside the fused operator and in float32."""
        width = p.key.shape[-1] // self.heads
        query = p.query.unflatten(-1, (self.heads, width)).transpose(1, 2) * (1 / math.sqrt(width))
        key = p.key.unflatten(-1, (self.heads, width)).permute(0, 2, 3, 1)
        scores: Tensor = query @ key
        return scores.float().softmax(dim=-1)


class ServingMlp(nn.Module):
    def __init__(self, source: Mlp) -> None:
        super().__init__()
        self.fc1, self.fc2 = _linear(source.fc1), _linear(source.fc2)

    def forward(self, tokens: Tensor) -> Tensor:
        out: Tensor = self.fc2(F.gelu(self.fc1(tokens)))
        return out


class ServingBlock(nn.Module):
    def __init__(self, source: Block) -> None:
        super().__init__()
        self.norm1, self.norm2 = _norm(source.norm1), _norm(source.norm2)
        self.attn, self.mlp = FusedAttention(source.attn), ServingMlp(source.mlp)

    def forward(self, tokens: Tensor, queries: int | None) -> tuple[Tensor, Projections]:
        """Tokens after the block, the first `queries` of them alone where that is given."""
        projections = self.attn.project(self.norm1(tokens), queries)
        tokens = tokens[:, :queries] + self.attn.mix(projections)
        return tokens + self.mlp(self.norm2(tokens)), projections


def _norm(source: nn.Module) -> nn.LayerNorm:
    assert isinstance(source, nn.LayerNorm)
    norm = nn.LayerNorm(source.normalized_shape, eps=source.eps)
    norm.load_state_dict(source.state_dict())
    return norm


class ClassifyGraph(nn.Module):
    """images uint8 (B, height, width, 3) -> logits (B, classes)."""

    outputs: tuple[str, ...] = ("logits",)

    def __init__(self, model: VisionTransformer, preprocessing: Preprocessing) -> None:
        super().__init__()
        refuse_unserved(model.config)
        self.config = model.config
        self.patch_embed = FoldedPatchEmbed(model, preprocessing)
        self.blocks = nn.ModuleList(ServingBlock(b) for b in model.blocks if isinstance(b, Block))
        self.norm = _norm(model.norm)
        self.pre_logits = None if model.pre_logits is None else _linear(model.pre_logits)
        self.head = _linear(model.head)

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        logits, _ = self.run(images)
        return (logits,)

    def run(self, images: Tensor) -> tuple[Tensor, list[Projections]]:
        """Logits, and the projections of every layer for what is read beside them."""
        tokens = self.patch_embed(images)
        projections = []
        pools_class_token = self.config.pool == "cls"
        for i, block in enumerate(self.blocks):
            last = i == len(self.blocks) - 1
            tokens, of_layer = block(tokens, 1 if last and pools_class_token else None)
            projections.append(of_layer)
        tokens = self.norm(tokens)
        pooled = tokens[:, 0] if pools_class_token else tokens[:, len(self.config.prefix) :].mean(dim=1)
        if self.pre_logits is not None:
            pooled = torch.tanh(self.pre_logits(pooled))
        return self.head(pooled), projections


class ExplainGraph(ClassifyGraph):
    """images -> logits, and every map from the same forward pass.

    attention (B, L, H, T): the class token's row after softmax; pooled by mean, the mean of the patches' rows.
    rollout (B, T): the same row of the product over all layers of (mean over heads + identity) / 2
    (Abnar & Zuidema 2020, arXiv 2005.00928), computed as a row from the last layer to the first.
    """

    outputs = ("logits", "attention", "rollout")

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        logits, projections = self.run(images)
        rows, means = [], []
        for block, p in zip(self.blocks, projections, strict=True):
            assert isinstance(block, ServingBlock)
            weights = block.attn.weights(p)  # (B, H, T, T), or (B, H, 1, T) in a last block of the class token alone
            rows.append(self._pooled(weights))
            means.append(weights.mean(dim=1))
        rollout = 0.5 * self._pooled(means[-1]) + 0.5 * self._start(means[-1])
        for mean in reversed(means[:-1]):
            rollout = 0.5 * (rollout.unsqueeze(1) @ mean).squeeze(1) + 0.5 * rollout
        return logits, torch.stack(rows, dim=1), rollout

    def _pooled(self, weights: Tensor) -> Tensor:
        """Drop the query dimension (second to last): the pooled queries' mean row."""
        if self.config.pool == "cls":
            return weights[..., 0, :]
        return weights[..., len(self.config.prefix) :, :].mean(dim=-2)

    def _start(self, like: Tensor) -> Tensor:
        """Where the pooled query reads itself: the row of the identity, or the mean of the patches' rows, (1, T)."""
        start = torch.zeros(1, like.shape[-1])
        prefix = len(self.config.prefix)
        if self.config.pool == "cls":
            start[:, 0] = 1.0
        else:
            start[:, prefix:] = 1.0 / (like.shape[-1] - prefix)
        return start
