"""Evens out the inputs of the blocks' linear layers before they are rounded to 8 bits: SmoothQuant (arXiv 2211.10438).

Some channels of a norm's output are many times as large as the others. With one range for the whole tensor, few
steps are left for the others. The norm divides each channel by a factor, and the weights that read the channel are
multiplied by it, so that in float32 nothing changes.
"""

import copy

import torch
from torch import Tensor, nn

from app.inference.engine import Pixels
from export.ranges import ranges
from model.blocks import Block, ParallelBlock
from model.checkpoints.checkpoint import Checkpoint
from model.vit import VisionTransformer

STRENGTH = 0.7  # 0 leaves the activations unchanged, 1 moves all of their unevenness to the weights
SMALLEST = 1e-5  # range of a channel, which can be all zeros

Norm = nn.LayerNorm | nn.RMSNorm


@torch.no_grad()
def smoothed(checkpoint: Checkpoint, pixels: Pixels) -> VisionTransformer:
    """A copy of the model with factors from the outputs of its norms on `pixels` (images, height, width, 3)."""
    reaches = ranges(checkpoint, pixels, [norm for norm, _ in _all_readers(checkpoint.model)])
    model = copy.deepcopy(checkpoint.model)
    for (norm, layers), reach in zip(_all_readers(model), reaches, strict=True):
        _move(norm, layers, reach.clamp(min=SMALLEST))
    return model


def _all_readers(model: VisionTransformer) -> list[tuple[Norm, list[nn.Linear]]]:
    return [pair for block in model.blocks for pair in _readers(block)]


def _readers(block: nn.Module) -> list[tuple[Norm, list[nn.Linear]]]:
    """Each norm of a block whose output only linear layers read, and those layers."""
    names = {"attn.norm": ["attn.proj"], "mlp.norm": ["mlp.fc2"]}
    if isinstance(block, Block):
        names |= {"norm1": ["attn.qkv"], "norm2": ["mlp.fc1"]}
    if isinstance(block, ParallelBlock):
        names |= {"norm1": ["attn.qkv", "mlp.fc1"]}
    pairs = []
    for of_norm, of_layers in names.items():
        norm, layers = block.get_submodule(of_norm), [block.get_submodule(name) for name in of_layers]
        linear = [layer for layer in layers if isinstance(layer, nn.Linear)]
        if isinstance(norm, Norm) and len(linear) == len(layers):
            pairs.append((norm, linear))
    return pairs


def _move(norm: Norm, layers: list[nn.Linear], reach: Tensor) -> None:
    weights = torch.stack([layer.weight.abs().amax(0) for layer in layers]).amax(0).clamp(min=SMALLEST)
    factors = reach**STRENGTH / weights ** (1 - STRENGTH)
    norm.weight.div_(factors)
    if isinstance(norm, nn.LayerNorm):
        norm.bias.div_(factors)
    for layer in layers:
        layer.weight.mul_(factors)
