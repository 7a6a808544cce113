"""Loss and accuracy of a network on images that it has not learned from."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from model.fit.samples import Samples
from model.preprocessing import Preprocessing
from model.progress import track
from model.vit import VisionTransformer

CHUNK = 128  # images at a time


@dataclass(frozen=True, kw_only=True)
class Measured:
    loss: float  # mean cross-entropy
    accuracy: float  # top-1


def measure(network: VisionTransformer, samples: Samples, preprocessing: Preprocessing) -> Measured:
    return measured(logits(network, samples, preprocessing), samples.classes)


def measured(logits: Tensor, classes: Tensor) -> Measured:
    """Loss and accuracy of logits (N, C) with right classes (N,)."""
    return Measured(
        loss=F.cross_entropy(logits.double(), classes).item(),
        accuracy=(logits.argmax(1) == classes).double().mean().item(),
    )


@torch.inference_mode()
def logits(
    network: VisionTransformer, samples: Samples, preprocessing: Preprocessing, *, title: str | None = None
) -> Tensor:
    """Logits (N, C) on the CPU, in float32 as the service computes. A bar is drawn under `title`, if there is one."""
    device = next(network.parameters()).device
    chunks = samples.pixels.split(CHUNK)
    shown = track(chunks, title) if title else chunks
    return torch.cat([network(network_input(pixels, preprocessing, device)).cpu() for pixels in shown])


def network_input(pixels: Tensor, preprocessing: Preprocessing, device: torch.device) -> Tensor:
    """Pixels uint8 (B, height, width, 3) to float (B, 3, height, width) on the device, normalised."""
    return normalise(pixels.to(device).permute(0, 3, 1, 2), preprocessing)


def normalise(pixels: Tensor, preprocessing: Preprocessing) -> Tensor:
    """Normalise as the service does: pixels (B, 3, height, width), from 0 to 255 of any type, to (pixel / 255 - mean) /
    std.
    """
    mean, std = (torch.tensor(v, device=pixels.device).view(3, 1, 1) for v in (preprocessing.mean, preprocessing.std))
    return (pixels.float() / 255 - mean) / std
