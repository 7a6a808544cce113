"""The network written out, so that gradients of attention can be read and rules of relevance put in their place.

In shapes: B images, L layers, H heads, T tokens, N patches.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from model.blocks import Block
from model.mlp import Mlp
from model.vit import VisionTransformer

SMALL = 1e-6


class Rules:
    """The ordinary forward pass, whose backward pass gives gradients. Subclasses change how it goes back, and no value.

    Relevance is input times gradient, so a rule is a change of the gradient (Achtibat et al. 2024, section 3).
    """

    def norm(self, layer: nn.Module, x: Tensor) -> Tensor:
        out: Tensor = layer(x)
        return out

    def softmax(self, scores: Tensor) -> Tensor:
        return scores.softmax(-1)

    def product(self, a: Tensor, b: Tensor) -> Tensor:
        return a @ b

    def activation(self, layer: Mlp, x: Tensor) -> Tensor:
        return layer.activation(x)


class AttnLrp(Rules):
    """Achtibat et al. 2024, arXiv 2402.05602, section 3.2.

    Linear layers: the epsilon rule, whose epsilon only keeps a division by zero away. Softmax: its own gradient
    (Proposition 3.1). Products of two variables: half of the relevance for each (Proposition 3.3). Norms and
    activations: all of it passes (Proposition 3.4, and the identity rule of section 3.2).
    """

    def norm(self, layer: nn.Module, x: Tensor) -> Tensor:
        assert isinstance(layer, nn.LayerNorm)
        centred = x - x.mean(-1, keepdim=True)
        scale = (x.var(-1, unbiased=False, keepdim=True) + layer.eps).sqrt().detach()
        out: Tensor = centred / scale * layer.weight + layer.bias
        return out

    def product(self, a: Tensor, b: Tensor) -> Tensor:
        out = a @ b
        return (out + out.detach()) / 2

    def activation(self, layer: Mlp, x: Tensor) -> Tensor:
        factor = torch.where(x.abs() < SMALL, 0.5, super().activation(layer, x) / x)
        return x * factor.detach()


class CpLrp(AttnLrp):
    """Ali et al. 2022, arXiv 2202.07304: attention and the scales of norms are taken as constants."""

    def softmax(self, scores: Tensor) -> Tensor:
        return scores.softmax(-1).detach()

    def product(self, a: Tensor, b: Tensor) -> Tensor:
        return a @ b


class Pass(NamedTuple):
    logits: Tensor  # (B, C)
    matrices: list[Tensor]  # of each layer, (B, H, T, T), attention after softmax


def run(model: VisionTransformer, images: Tensor, rules: Rules) -> Pass:
    """The network of the paper, with a class token. Raises AssertionError for the other kinds."""
    assert model.config.pool == "cls"
    assert model.cls_token is not None
    assert model.pos_embed is not None
    patches = model.patch_embed.proj(images).flatten(2).transpose(1, 2)  # (B, N, D)
    tokens = torch.cat([model.cls_token.expand(len(images), -1, -1), patches + model.pos_embed], dim=1)
    matrices = []
    for block in model.blocks:
        assert isinstance(block, Block)
        attended, matrix = _attended(block, rules.norm(block.norm1, tokens), rules)
        tokens = tokens + attended
        hidden = block.mlp.fc1(rules.norm(block.norm2, tokens))
        tokens = tokens + block.mlp.fc2(rules.activation(block.mlp, hidden))
        matrices.append(matrix)
    return Pass(model.head(rules.norm(model.norm, tokens)[:, 0]), matrices)


def _attended(block: Block, read: Tensor, rules: Rules) -> tuple[Tensor, Tensor]:
    """What attention adds to the tokens, (B, T, D), and its matrix."""
    heads = block.attn.heads
    q, k, v = block.attn.qkv(read).unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
    matrix = rules.softmax(rules.product(q, k.transpose(-2, -1)) * q.shape[-1] ** -0.5)
    mixed = rules.product(matrix, v)
    return block.attn.proj(mixed.transpose(1, 2).flatten(2)), matrix
