"""The ranges of the numbers inside a network, over some images, and the moments of what its layers read."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack

import torch
from torch import Tensor, nn

from app.inference.engine import Pixels
from export.reference import normalised
from model.attention import Attention
from model.blocks import ResPostBlock
from model.checkpoints.checkpoint import Checkpoint

BATCH = 8

Hook = Callable[[nn.Module, tuple[Tensor, ...], Tensor], None]


def ranges(checkpoint: Checkpoint, pixels: Pixels, modules: Sequence[nn.Module]) -> list[Tensor]:
    """The least and the largest number of each channel, (2, D), in the outputs of each of the network's `modules`.

    `pixels` are uint8 (images, height, width, 3).
    """
    found: list[list[Tensor]] = [[] for _ in modules]
    _run(checkpoint, pixels, [(module, _ends(ends)) for module, ends in zip(modules, found, strict=True)])
    return [_joined(ends) for ends in found]


def measure(checkpoint: Checkpoint, pixels: Pixels) -> None:
    """Keep ranges over `pixels` in the blocks of the checkpoint's model, as buffers which export/rewrite.py passes on.

    Each linear layer gets `range` (2,), the least and the largest number that it reads, and `moments` (in, in), the
    means of the products of each two numbers of a token. Each attention that reads the output of a norm gets `reach`
    (2,), the largest magnitudes of queries and of keys, with any rotary positions. Where it reads the residual stream
    itself, scores are so large that rounding them would change what attention reads.
    """
    blocks = checkpoint.model.blocks
    linear = {module: list[Tensor]() for module in blocks.modules() if isinstance(module, nn.Linear)}
    normed = [block.get_submodule("attn") for block in blocks if not isinstance(block, ResPostBlock)]
    attention = {module: list[Tensor]() for module in normed if isinstance(module, Attention)}
    for layer in linear:
        layer.register_buffer("moments", torch.zeros(layer.in_features, layer.in_features))
    of_inputs = [(layer, _of_inputs(found, layer.get_buffer("moments"))) for layer, found in linear.items()]
    of_scores = [(layer.rope, _ends(found)) for layer, found in attention.items()]
    _run(checkpoint, pixels, [*of_inputs, *of_scores])
    for layer, found in linear.items():
        least, largest = _joined(found)
        layer.register_buffer("range", torch.stack([least.min(), largest.max()]))
        layer.get_buffer("moments").div_(len(pixels))
    for reader, found in attention.items():  # queries go through `rope` first, then keys
        by_pass = [_joined(found[first::2]).abs().max() for first in (0, 1)]
        reader.register_buffer("reach", torch.stack(by_pass))


@torch.no_grad()
def _run(checkpoint: Checkpoint, pixels: Pixels, hooks: Sequence[tuple[nn.Module, Hook]]) -> None:
    with ExitStack() as stack:
        for module, hook in hooks:
            stack.enter_context(module.register_forward_hook(hook))
        for start in range(0, len(pixels), BATCH):
            checkpoint.model(normalised(pixels[start : start + BATCH], checkpoint))


def _ends(found: list[Tensor]) -> Hook:
    return lambda _module, _inputs, output: found.append(_of_channels(output))


def _of_inputs(found: list[Tensor], moments: Tensor) -> Hook:
    def hook(_module: nn.Module, inputs: tuple[Tensor, ...], _output: Tensor) -> None:
        tokens = inputs[0].flatten(0, -2)
        found.append(_of_channels(tokens))
        moments.addmm_(tokens.T, tokens, alpha=1 / inputs[0].shape[1])

    return hook


def _of_channels(x: Tensor) -> Tensor:
    return torch.stack(x.flatten(0, -2).aminmax(dim=0))


def _joined(ends: list[Tensor]) -> Tensor:
    """The ends of all: (2, D)."""
    least, largest = torch.stack(ends).unbind(1)
    return torch.stack([least.amin(0), largest.amax(0)])
