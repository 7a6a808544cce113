"""Evens out what the blocks' linear layers read, before it is rounded to 8 bits: SmoothQuant (arXiv 2211.10438).

Some channels of a norm's output are many times as large as the rest, and with one range for a whole tensor they leave
few steps to the others. Each channel is divided by a factor in the norm, and the weights that read it multiplied by it,
so that in float32 nothing changes.
"""

import copy
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from app.bundle import ImageSpec
from app.preprocess import preprocess
from export.pictures import reference_pictures
from export.reference import normalised
from model.blocks import Block, ParallelBlock
from model.checkpoints.checkpoint import Checkpoint
from model.vit import VisionTransformer

STRENGTH = 0.7  # 0 leaves activations as they are, 1 gives all of their unevenness to the weights
PICTURES, BATCH = 24, 8
SMALLEST = 1e-5  # of a range; a channel can be all zeros

Norm = nn.LayerNorm | nn.RMSNorm


def smoothed(checkpoint: Checkpoint, spec: ImageSpec) -> VisionTransformer:
    """A copy of the model, with factors from what its norms give on reference pictures."""
    model = copy.deepcopy(checkpoint.model)
    readers = [pair for block in model.blocks for pair in _readers(block)]
    ranges = [torch.full_like(norm.weight, SMALLEST) for norm, _ in readers]
    hooks = [norm.register_forward_hook(_widen(reach)) for (norm, _), reach in zip(readers, ranges, strict=True)]
    pixels = np.stack([preprocess(picture, spec)[0] for picture in reference_pictures(PICTURES)])
    with torch.no_grad():
        for batch in np.split(pixels, PICTURES // BATCH):
            model(normalised(batch, checkpoint))
        for hook in hooks:
            hook.remove()
        for (norm, layers), reach in zip(readers, ranges, strict=True):
            _move(norm, layers, reach)
    return model


def _readers(block: nn.Module) -> list[tuple[Norm, list[nn.Linear]]]:
    """Each norm of a block that linear layers alone read, and those."""
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


def _widen(reach: Tensor) -> Callable[[nn.Module, object, Tensor], None]:
    """A hook that keeps the largest magnitude of each channel in `reach` (D,)."""

    def hook(_module: nn.Module, _inputs: object, output: Tensor) -> None:
        torch.maximum(reach, output.abs().flatten(0, -2).amax(0), out=reach)

    return hook


def _move(norm: Norm, layers: list[nn.Linear], reach: Tensor) -> None:
    weights = torch.stack([layer.weight.abs().amax(0) for layer in layers]).amax(0).clamp(min=SMALLEST)
    factors = reach**STRENGTH / weights ** (1 - STRENGTH)
    norm.weight.div_(factors)
    if isinstance(norm, nn.LayerNorm):
        norm.bias.div_(factors)
    for layer in layers:
        layer.weight.mul_(factors)
