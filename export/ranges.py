"""The ranges of the numbers inside a network, over some images."""

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
    """The largest magnitude of each channel, (D,), in the outputs of each of the network's `modules`.

    `pixels` are uint8 (images, height, width, 3).
    """
    found: list[list[Tensor]] = [[] for _ in modules]
    _run(checkpoint, pixels, [(module, _magnitudes(maxima)) for module, maxima in zip(modules, found, strict=True)])
    return [torch.stack(maxima).amax(0) for maxima in found]


def measure(checkpoint: Checkpoint, pixels: Pixels) -> None:
    """Keep ranges over `pixels` in the blocks of the checkpoint's model, as buffers which export/rewrite.py passes on.

    Each linear layer gets `range` (2,), the least and the largest number that it reads. Each attention that reads the
    output of a norm gets `reach` (2,), the largest magnitudes of queries and of keys, with any rotary positions. Where
    it reads the residual stream itself, scores are so large that rounding them would change what attention reads.
    """
    blocks = checkpoint.model.blocks
    linear = {module: list[Tensor]() for module in blocks.modules() if isinstance(module, nn.Linear)}
    normed = [block.get_submodule("attn") for block in blocks if not isinstance(block, ResPostBlock)]
    attention = {module: list[Tensor]() for module in normed if isinstance(module, Attention)}
    of_inputs = [(layer, _ends(found)) for layer, found in linear.items()]
    of_scores = [(layer.rope, _magnitudes(found)) for layer, found in attention.items()]
    _run(checkpoint, pixels, [*of_inputs, *of_scores])
    for layer, found in linear.items():
        least, largest = torch.stack(found).unbind(1)
        layer.register_buffer("range", torch.stack([least.min(), largest.max()]))
    for reader, found in attention.items():
        by_pass = torch.stack(found).amax(1).unflatten(0, (-1, 2))  # queries go through `rope` first, then keys
        reader.register_buffer("reach", by_pass.amax(0))


@torch.no_grad()
def _run(checkpoint: Checkpoint, pixels: Pixels, hooks: Sequence[tuple[nn.Module, Hook]]) -> None:
    with ExitStack() as stack:
        for module, hook in hooks:
            stack.enter_context(module.register_forward_hook(hook))
        for start in range(0, len(pixels), BATCH):
            checkpoint.model(normalised(pixels[start : start + BATCH], checkpoint))


def _magnitudes(found: list[Tensor]) -> Hook:
    return lambda _module, _inputs, output: found.append(output.abs().flatten(0, -2).amax(0))


def _ends(found: list[Tensor]) -> Hook:
    return lambda _module, inputs, _output: found.append(torch.stack(inputs[0].aminmax()))
