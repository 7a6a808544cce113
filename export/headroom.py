"""Room above the measured numbers of hidden layers, where rounding disturbs least: other images have larger ones.

What is beyond a range is cut off. In DINOv2, hidden numbers of some images are up to 2.4 times the largest in those
whose ranges were taken, most in the blocks that rounding disturbs least.
"""

import torch
from torch import Tensor, nn

from model.vit import VisionTransformer

MOST = 2.0  # times as wide


@torch.no_grad()
def widen(model: VisionTransformer) -> None:
    """Widen the ranges of second layers of MLPs that rounding disturbs less than the median one, until it disturbs them
    as much, or MOST times.

    export/ranges.py has measured the model.
    """
    layers = [block.get_submodule("mlp.fc2") for block in model.blocks]
    disturbed = torch.stack([_disturbance(layer) for layer in layers])
    room = (disturbed.nanmedian() / disturbed).nan_to_num(1).clamp(1, MOST)  # 0 / 0 is of a layer of zeros
    for layer, times in zip(layers, room, strict=True):
        layer.get_buffer("range").mul_(times)


def _disturbance(layer: nn.Module) -> Tensor:
    """In proportion to the error of the outputs when inputs are rounded, over the outputs: root mean squares, ().

    Errors of inputs are taken to be spread evenly over a step, and to have nothing to do with each other.
    """
    low, high = layer.get_buffer("range")
    weight = layer.get_parameter("weight")
    outputs = (weight @ layer.get_buffer("moments") * weight).sum().sqrt()
    return (high - low) * weight.norm() / outputs
