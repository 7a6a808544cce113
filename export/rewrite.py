"""The network rewritten for serving: the same outputs from fewer operations.

The changes, each exact up to rounding:
- input is 8-bit NHWC; mean, std and 1/255 are folded into the patch projection, which has no padding;
- the patch projection is a reshape and a MatMul; positions and biases are one table;
- Q, K and V are three MatMuls, and attention is ONNX Runtime's fused MultiHeadAttention; rotary positions are its
  RotaryEmbedding, with tables that are constants;
- weights are stored (in, out), so that no MatMul needs a Transpose; LayerScale is folded into them;
- if the head reads only the first tokens, the last block computes only those.

In shapes: B batch, N patches, T tokens, D width, H heads.
"""

import copy
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from export.patches import FixedConv2d, FoldedPatchEmbed, StemPatchEmbed
from model.attention import Attention
from model.blocks import Block, EncoderBlock, ParallelBlock
from model.norm import LayerScale
from model.patch_embed import PatchEmbed
from model.preprocessing import Preprocessing
from model.resnet import StdConv2d
from model.rope import Rope
from model.vit import VisionTransformer


def rewrite(model: VisionTransformer, preprocessing: Preprocessing) -> VisionTransformer:
    """A copy of `model` that takes uint8 images (B, height, width, 3)."""
    network = copy.deepcopy(model).eval()
    source = network.patch_embed
    if isinstance(source, PatchEmbed) and source.backbone is not None:
        network.add_module("patch_embed", StemPatchEmbed(source, preprocessing))
    else:
        network.add_module("patch_embed", FoldedPatchEmbed(source, network.config, preprocessing))
        _fold_positions(network)
    for block in network.blocks:
        _fold_layer_scale(block)
    replace_layers(
        network, {Attention: FusedAttention, nn.Linear: _linear, nn.RMSNorm: PlainRMSNorm, StdConv2d: FixedConv2d}
    )
    last = network.blocks[-1]
    if isinstance(last, Block) and network.config.pool == "cls" and network.config.head_layers == 1:
        network.blocks[-1] = HeadTokensBlock(last, tokens=2 if network.config.distillation_head else 1)
    return network


class Linear(nn.Module):
    """x @ weight + bias with weight (in, out). `range` (2,) and `moments` (in, in) are those of x, if measured."""

    def __init__(
        self, weight: Tensor, bias: Tensor | None, *, range: Tensor | None = None, moments: Tensor | None = None
    ) -> None:
        super().__init__()
        self.range, self.moments = range, moments
        self.weight = nn.Parameter(weight.detach().contiguous().clone())
        self.bias = None if bias is None else nn.Parameter(bias.detach().contiguous().clone())

    def forward(self, x: Tensor) -> Tensor:
        out = x @ self.weight
        return out if self.bias is None else out + self.bias


class FusedAttention(nn.Module):
    """model/attention.py with an operator for which ONNX Runtime has one kernel, on CPU and CUDA."""

    def __init__(self, source: Attention) -> None:
        super().__init__()
        self.heads = source.heads
        weights = source.qkv.weight.chunk(3)
        biases = (None, None, None) if source.qkv.bias is None else source.qkv.bias.chunk(3)
        measured = _measured(source.qkv)
        self.q, self.k, self.v = (Linear(w.T, b, **measured) for w, b in zip(weights, biases, strict=True))
        self.q_norm, self.k_norm = source.q_norm, source.k_norm
        self.rope = FusedRope(source.rope) if isinstance(source.rope, Rope) else nn.Identity()
        self.norm, self.proj = source.norm, source.proj
        self.q_rounding: nn.Module = nn.Identity()
        self.k_rounding: nn.Module = nn.Identity()
        self.reach = _measured(source).get("reach")
        bias = source.bias()
        self.bias = None if bias is None else nn.Parameter(bias.detach().contiguous())  # (1, H, T, T)

    def forward(self, tokens: Tensor, queries: int | None = None) -> Tensor:
        """Tokens (B, T, D) to (B, T, D), or to (B, queries, D) for the first `queries` tokens alone."""
        return self.proj(self.norm(self.mixed(tokens, queries)))

    def mixed(self, tokens: Tensor, queries: int | None = None) -> Tensor:
        """The values weighted by attention, heads side by side, (B, queries, H * d)."""
        value = self.v(tokens)
        if self.reach is not None and queries is None:  # no kernel fuses rounded products, so maps can share these
            by_head: Tensor = self.weights(tokens) @ value.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            return by_head.transpose(1, 2).flatten(2)
        query, key = self._query(tokens, queries).to(value.dtype), self._key(tokens).to(value.dtype)
        bias = () if self.bias is None else (None, None, self.bias[:, :, :queries])
        return torch.onnx.ops.symbolic(
            "com.microsoft::MultiHeadAttention",
            (query, key, value, *bias),
            {"num_heads": self.heads},
            dtype=query.dtype,
            shape=query.shape,
            version=1,
        )

    def weights(self, tokens: Tensor) -> Tensor:
        """Attention after softmax, (B, H, T, T), in float32 and beside the fused operator.

        Q and K appear a second time; equal nodes are merged.
        """
        query, key = self._query(tokens, None).float(), self._key(tokens).float()
        width = query.shape[-1] // self.heads
        query = query.unflatten(-1, (self.heads, width)).transpose(1, 2) * (1 / math.sqrt(width))
        scores = query @ key.unflatten(-1, (self.heads, width)).permute(0, 2, 3, 1)
        if self.bias is not None:
            scores = scores + self.bias.float()
        return scores.softmax(dim=-1)

    def _query(self, tokens: Tensor, queries: int | None) -> Tensor:
        query = self._normed(self.q_norm, self.q(tokens[:, :queries]))
        # The first tokens are not patches: nothing turns.
        return self.q_rounding(query if queries is not None else self.rope(query))

    def _key(self, tokens: Tensor) -> Tensor:
        return self.k_rounding(self.rope(self._normed(self.k_norm, self.k(tokens))))

    def _normed(self, norm: nn.Module, x: Tensor) -> Tensor:
        """`norm` applied to each head; x and the result are (B, T, H * width of a head)."""
        if isinstance(norm, nn.Identity):
            return x
        return norm(x.unflatten(-1, (self.heads, -1))).flatten(2)


class FusedRope(nn.Module):
    """model/rope.py with an operator of ONNX Runtime's, for queries or keys (B, T, H * d) with the heads side by side.

    Angles that differ between heads are those of one head of their total width, at most 1,024 channels on CUDA.
    """

    def __init__(self, source: Rope) -> None:
        super().__init__()
        cos, sin = (table.detach() for table in source.tables())
        if cos.ndim == 3:
            cos, sin = (table.transpose(0, 1).flatten(1) for table in (cos, sin))
        self.cos, self.sin = nn.Parameter(cos.contiguous()), nn.Parameter(sin.contiguous())
        self.neighbours = int(source.config.pairs == "neighbours")

    def forward(self, x: Tensor) -> Tensor:
        # A row for each token: the operator also takes the first one alone, but OpenVINO reads that as the row of all.
        rows = torch.arange(x.shape[1]).expand(x.shape[0], -1)
        return torch.onnx.ops.symbolic(
            "com.microsoft::RotaryEmbedding",
            (x.to(self.cos.dtype), rows, self.cos, self.sin),
            {"interleaved": self.neighbours},
            dtype=self.cos.dtype,
            shape=x.shape,
            version=1,
        )


class PlainRMSNorm(nn.RMSNorm):
    """Of operators that the exporter can translate, in float32 as torch computes it."""

    def __init__(self, source: nn.RMSNorm) -> None:
        super().__init__(source.normalized_shape, eps=source.eps)
        self.weight = source.weight

    def forward(self, x: Tensor) -> Tensor:
        full = x.float()
        normed: Tensor = (
            full * torch.rsqrt(full.pow(2).mean(-1, keepdim=True) + (self.eps or 0.0)) * self.weight.float()
        )
        return normed.to(x.dtype)


class HeadTokensBlock(EncoderBlock):
    """A last block that computes only the first `tokens` tokens: no logit depends on the others.

    `whole` is the block that computes all of them, with the same weights.
    """

    def __init__(self, source: Block, *, tokens: int) -> None:
        nn.Module.__init__(self)  # its layers are those of `source`
        self.whole = source
        self.norm1, self.attn, self.ls1 = source.norm1, source.attn, source.ls1
        self.norm2, self.mlp, self.ls2 = source.norm2, source.mlp, source.ls2
        self.tokens = tokens

    def branches(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """As in model/blocks.py, each (B, n, D) for the n tokens that are computed."""
        attended: Tensor = self.ls1(self.attn(self.read(tokens), self.tokens))
        return attended, self.ls2(self.mlp(self.norm2(tokens[:, : self.tokens] + attended)))


def _measured(module: nn.Module) -> dict[str, Tensor]:
    """The buffers of export/ranges.py."""
    buffers = dict(module.named_buffers(recurse=False))
    return {name: buffers[name] for name in ("range", "moments", "reach") if name in buffers}


def _linear(source: nn.Linear) -> Linear:
    return Linear(source.weight.T, source.bias, **_measured(source))


def replace_layers(module: nn.Module, forms: dict[type[nn.Module], Callable[[Any], nn.Module]]) -> None:
    """Replace every layer of one of these types by its form, and then the layers in that."""
    for name, child in module.named_children():
        if type(child) in forms:
            child = forms[type(child)](child)
            setattr(module, name, child)
        replace_layers(child, forms)


def _fold_positions(network: VisionTransformer) -> None:
    """Add the positions to the bias of the patch projection, which becomes a table (N, D)."""
    positions = network.positions()
    patch_embed = network.patch_embed
    assert isinstance(patch_embed, FoldedPatchEmbed)
    if positions is None or not isinstance(patch_embed.norm, nn.Identity):
        return
    patch_embed.proj.bias = nn.Parameter((positions[0] + patch_embed.proj.bias).detach())
    network.pos_embed = network.pos_embed_x = network.pos_embed_y = None


@torch.no_grad()
def _fold_layer_scale(block: nn.Module) -> None:
    """Multiply the factors of each branch into its last projection."""
    branches = {"ls1": ["attn.proj"], "ls2": ["mlp.fc2"]}
    if isinstance(block, ParallelBlock):
        branches = {"ls1": ["attn.proj", "mlp.fc2"]}
    for name, projections in branches.items():
        scale, layers = getattr(block, name, None), [block.get_submodule(path) for path in projections]
        linear = [layer for layer in layers if isinstance(layer, nn.Linear)]
        if isinstance(scale, LayerScale) and linear == layers:
            for layer in linear:
                layer.weight.mul_(scale.gamma[:, None])
                layer.bias.mul_(scale.gamma)
            setattr(block, name, nn.Identity())
