"""Evens out what products read before it is rounded to 8 bits: SmoothQuant (arXiv 2211.10438).

Some channels are many times as large as the others. With one range for the whole tensor, few steps are left for the
others. What writes a channel divides it by a factor, and the weights that read the channel are multiplied by it, so
that in float32 nothing changes. An activation cannot pass a factor on, so a multiplication follows it.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from app.inference.engine import Pixels
from export.ranges import ranges
from model.attention import Attention
from model.blocks import Block, ParallelBlock
from model.checkpoints.checkpoint import Checkpoint
from model.mlp import Mlp
from model.norm import LayerScale
from model.vit import VisionTransformer

STRENGTH = 0.7  # 0 leaves the activations unchanged, 1 moves all of their unevenness to the weights
# Of the largest hidden channel's range: each is taken to have so much at least. In DINOv2, where the largest have the
# same in photographs and in stamps, others had up to 9 times as much, and what is beyond a range is cut off.
LEAST_HIDDEN = 0.25
SMALLEST = 1e-5  # range of a channel, which can be all zeros


Norm = nn.LayerNorm | nn.RMSNorm
Move = tuple[nn.Module, Callable[[Tensor], None]]  # what gives the channels, and what to do with their ends (2, D)


@torch.no_grad()
def smoothed(checkpoint: Checkpoint, pixels: Pixels) -> VisionTransformer:
    """A copy of the model with factors from its numbers on `pixels` (images, height, width, 3)."""
    ends = ranges(checkpoint, pixels, [module for module, _ in _moves(checkpoint.model)])
    model = copy.deepcopy(checkpoint.model)
    for (_, move), of_channels in zip(_moves(model), ends, strict=True):
        move(of_channels)
    return model


def _moves(model: VisionTransformer) -> list[Move]:
    return [move for block in model.blocks for move in _of_block(block)]


def _of_block(block: nn.Module) -> Iterator[Move]:
    """Those of scores first, then those of values and of hidden layers, then those of norms."""
    attn, mlp = block.get_submodule("attn"), block.get_submodule("mlp")
    assert isinstance(attn, Attention)
    assert isinstance(mlp, Mlp)
    if isinstance(attn.rope, nn.Identity) and isinstance(attn.q_norm, nn.Identity):
        yield attn.qkv, partial(_even_scores, attn)
    if isinstance(attn.norm, nn.Identity) and isinstance(attn.proj, nn.Linear):
        yield attn.norm, partial(_move_values, attn.qkv, attn.proj)
    if isinstance(mlp.norm, nn.Identity):
        yield mlp.norm, partial(_move_hidden, mlp)
    names = {"attn.norm": ["attn.proj"], "mlp.norm": ["mlp.fc2"]}
    if isinstance(block, Block):
        names |= {"norm1": ["attn.qkv"], "norm2": ["mlp.fc1"]}
    if isinstance(block, ParallelBlock):
        names |= {"norm1": ["attn.qkv", "mlp.fc1"]}
    for of_norm, of_layers in names.items():
        norm, layers = block.get_submodule(of_norm), [block.get_submodule(name) for name in of_layers]
        linear = [layer for layer in layers if isinstance(layer, nn.Linear)]
        if isinstance(norm, Norm) and len(linear) == len(layers):
            yield norm, partial(_move_norm, norm, linear)


def _move_norm(norm: Norm, layers: Sequence[nn.Linear], ends: Tensor) -> None:
    factors = _given(layers, ends.abs().amax(0))
    norm.weight.div_(factors)
    if isinstance(norm, nn.LayerNorm):
        norm.bias.div_(factors)


def _move_values(qkv: nn.Linear, proj: nn.Linear, ends: Tensor) -> None:
    """A row of attention multiplies all numbers of a channel alike."""
    _divide(qkv, 3, 2, _given([proj], ends.abs().amax(0)))


def _move_hidden(mlp: Mlp, ends: Tensor) -> None:
    reach = ends.abs().amax(0)
    factors = _given([mlp.fc2], reach.clamp(min=LEAST_HIDDEN * reach.max()))
    if mlp.gated:  # the second half multiplies the first, after its activation
        _divide(mlp.fc1, 2, 1, factors)
    else:
        scale = LayerScale(len(factors))
        scale.gamma.copy_(1 / factors)
        mlp.add_module("norm", scale)


def _given(layers: Sequence[nn.Linear], reach: Tensor) -> Tensor:
    """The factors (D,) of channels with this reach (D,), by which the weights that read them are multiplied."""
    weights = torch.stack([layer.weight.abs().amax(0) for layer in layers]).amax(0).clamp(min=SMALLEST)
    factors = reach.clamp(min=SMALLEST) ** STRENGTH / weights ** (1 - STRENGTH)
    for layer in layers:
        layer.weight.mul_(factors)
    return factors


def _divide(layer: nn.Linear, parts: int, part: int, factors: Tensor) -> None:
    """Divide the outputs in one of so many parts of a layer."""
    layer.weight.chunk(parts)[part].div_(factors[:, None])
    if layer.bias is not None:
        layer.bias.chunk(parts)[part].div_(factors)


def _even_scores(attn: Attention, ends: Tensor) -> None:
    """Give each channel of queries and keys the same reach in both, and put that of keys around 0.

    What all keys have in common adds the same number to each score of a query, and softmax takes it away.
    """
    queries, keys, _ = ends.chunk(3, dim=1)
    if attn.qkv.bias is not None:
        middle = keys.mean(0)
        attn.qkv.bias.chunk(3)[1].sub_(middle)
        keys = keys - middle
    of_query, of_key = (of_channels.abs().amax(0).clamp(min=SMALLEST) for of_channels in (queries, keys))
    factors = (of_key / of_query).sqrt()
    _divide(attn.qkv, 3, 0, 1 / factors)
    _divide(attn.qkv, 3, 1, factors)
