"""Pixels to the network's input, as the service computes it."""

import torch
from torch import Tensor

from model.preprocessing import Preprocessing


def normalise(pixels: Tensor, preprocessing: Preprocessing) -> Tensor:
    """Pixels (B, 3, height, width) from 0 to 255, uint8 or float, to (pixel / 255 - mean) / std per channel."""
    mean, std = (torch.tensor(v, device=pixels.device).view(3, 1, 1) for v in (preprocessing.mean, preprocessing.std))
    return (pixels.float() / 255 - mean) / std
