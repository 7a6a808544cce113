"""How large the numbers inside a network become, over some images."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from app.inference.contract import Pixels
from export.reference import normalised
from model.checkpoints.checkpoint import Checkpoint

BATCH = 8


@torch.no_grad()
def ranges(checkpoint: Checkpoint, pixels: Pixels, modules: Sequence[nn.Module]) -> list[Tensor]:
    """The largest magnitude of each channel, (D,), in the outputs of each of the network's `modules`.

    `pixels` are uint8 (images, height, width, 3).
    """
    found: list[list[Tensor]] = [[] for _ in modules]
    hooks = [module.register_forward_hook(_keep(maxima)) for module, maxima in zip(modules, found, strict=True)]
    for start in range(0, len(pixels), BATCH):
        checkpoint.model(normalised(pixels[start : start + BATCH], checkpoint))
    for hook in hooks:
        hook.remove()
    return [torch.stack(maxima).amax(0) for maxima in found]


def _keep(maxima: list[Tensor]) -> Callable[[nn.Module, object, Tensor], None]:
    def hook(_module: nn.Module, _inputs: object, output: Tensor) -> None:
        maxima.append(output.abs().flatten(0, -2).amax(0))

    return hook
