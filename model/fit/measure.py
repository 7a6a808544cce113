"""How right a network is on images that it has not learned from."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from model.fit.normalise import normalise
from model.fit.samples import Samples
from model.preprocessing import Preprocessing
from model.vit import VisionTransformer

CHUNK = 128  # images at a time


@dataclass(frozen=True, kw_only=True)
class Measured:
    loss: float  # mean cross-entropy
    accuracy: float  # top-1

    @property
    def rank(self) -> tuple[float, float]:
        """The larger the better: the loss decides between networks that are right equally often."""
        return self.accuracy, -self.loss


@torch.inference_mode()
def measure(network: VisionTransformer, samples: Samples, preprocessing: Preprocessing) -> Measured:
    """In eval mode and float32, as the service runs it. Raises ValueError if there are no images."""
    if not len(samples):
        raise ValueError("there are no images to measure on")
    device, training = next(network.parameters()).device, network.training
    network.eval()
    loss = right = torch.zeros((), dtype=torch.float64, device=device)
    for pixels, classes in zip(samples.pixels.split(CHUNK), samples.classes.split(CHUNK), strict=True):
        logits, wanted = network(network_input(pixels, preprocessing, device)), classes.to(device)
        loss = loss + F.cross_entropy(logits.double(), wanted, reduction="sum")
        right = right + (logits.argmax(1) == wanted).sum()
    network.train(training)
    return Measured(loss=loss.item() / len(samples), accuracy=right.item() / len(samples))


def network_input(pixels: Tensor, preprocessing: Preprocessing, device: torch.device) -> Tensor:
    """Pixels uint8 (B, height, width, 3) to float (B, 3, height, width) on the device, normalised."""
    return normalise(pixels.to(device).permute(0, 3, 1, 2), preprocessing)
