"""Adam with decoupled weight decay, and the learning rate over the steps of a run, as a factor of the largest."""

import math
from collections.abc import Callable, Iterable

import torch
from torch import nn

from model.vit import VisionTransformer

BETAS = (0.9, 0.999)  # paper, section 4.1
Schedule = Callable[[int, int, int], float]  # step, from 0, and the numbers of all steps and of those that warm up


def optimiser(
    network: VisionTransformer, *, rate: float, weight_decay: float = 0.0, beside: Iterable[nn.Module] = ()
) -> torch.optim.AdamW:
    """Only matrices decay, as in big_vision. `beside` are modules that learn with the network and decay whole."""
    matrices: list[nn.Parameter] = []  # and filters of convolutions
    others: list[nn.Parameter] = []  # biases, norms, tokens, positions and scales of layers
    for name, parameter in network.named_parameters():
        (matrices if parameter.ndim > 1 and name.endswith(".weight") else others).append(parameter)
    for module in beside:
        matrices += module.parameters()
    groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=rate, betas=BETAS, fused=True)


def cosine(step: int, steps: int, warm_up: int) -> float:
    """Rises linearly for `warm_up` steps, then falls to zero along a half cosine (paper, appendix B.1.1)."""
    if step < warm_up:
        return (step + 1) / warm_up
    return (1 + math.cos(math.pi * (step - warm_up) / max(1, steps - warm_up))) / 2


def linear(step: int, steps: int, warm_up: int) -> float:
    """Falls linearly to zero (paper, Table 3), and is smaller than that during the first `warm_up` steps."""
    return min(1.0, (step + 1) / max(1, warm_up)) * max(0.0, 1 - step / steps)
