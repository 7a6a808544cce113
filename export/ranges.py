"""How large the numbers inside a network become, over some of the reference images."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from app.bundle import ImageSpec
from export.images import reference_pixels
from export.reference import normalised
from model.checkpoints.checkpoint import Checkpoint

IMAGES, BATCH = 24, 8


@torch.no_grad()
def ranges(checkpoint: Checkpoint, spec: ImageSpec, modules: Sequence[nn.Module]) -> list[Tensor]:
    """The largest magnitude of each channel, (D,), in the outputs of each of the network's `modules`."""
    found: list[list[Tensor]] = [[] for _ in modules]
    hooks = [module.register_forward_hook(_keep(maxima)) for module, maxima in zip(modules, found, strict=True)]
    for batch in np.split(reference_pixels(spec, IMAGES), IMAGES // BATCH):
        checkpoint.model(normalised(batch, checkpoint))
    for hook in hooks:
        hook.remove()
    return [torch.stack(maxima).amax(0) for maxima in found]


def _keep(maxima: list[Tensor]) -> Callable[[nn.Module, object, Tensor], None]:
    def hook(_module: nn.Module, _inputs: object, output: Tensor) -> None:
        maxima.append(output.abs().flatten(0, -2).amax(0))

    return hook
