"""How large the numbers inside a network become, over some of the reference pictures."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from app.bundle import ImageSpec
from app.images.preprocess import preprocess
from export.pictures import reference_pictures
from export.reference import normalised
from model.checkpoints.checkpoint import Checkpoint

PICTURES, BATCH = 24, 8


@torch.no_grad()
def ranges(checkpoint: Checkpoint, spec: ImageSpec, modules: Sequence[nn.Module]) -> list[Tensor]:
    """The largest magnitude of each channel, (D,), of what each of the network's `modules` gives."""
    found: list[list[Tensor]] = [[] for _ in modules]
    hooks = [module.register_forward_hook(_keep(maxima)) for module, maxima in zip(modules, found, strict=True)]
    pixels = np.stack([preprocess(picture, spec.framing)[0] for picture in reference_pictures(PICTURES)])
    for batch in np.split(pixels, PICTURES // BATCH):
        checkpoint.model(normalised(batch, checkpoint))
    for hook in hooks:
        hook.remove()
    return [torch.stack(maxima).amax(0) for maxima in found]


def _keep(maxima: list[Tensor]) -> Callable[[nn.Module, object, Tensor], None]:
    def hook(_module: nn.Module, _inputs: object, output: Tensor) -> None:
        maxima.append(output.abs().flatten(0, -2).amax(0))

    return hook
