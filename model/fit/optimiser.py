"""Adam with decoupled weight decay."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from model.vit import VisionTransformer

BETAS = (0.9, 0.999)  # paper, section 4.1


def optimiser(
    network: VisionTransformer, *, rate: float, weight_decay: float = 0.0, beside: Iterable[nn.Module] = ()
) -> torch.optim.AdamW:
    """Only matrices decay, as in big_vision. `beside` are modules that learn with the network and decay whole."""
    matrices = [parameter for name, parameter in network.named_parameters() if decays(name, parameter)]
    others = [parameter for name, parameter in network.named_parameters() if not decays(name, parameter)]
    matrices += [parameter for module in beside for parameter in module.parameters()]
    groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=rate, betas=BETAS, fused=True)


def decays(name: str, parameter: Tensor) -> bool:
    """Matrices and filters do; biases, norms, tokens, positions and scales of layers do not."""
    return parameter.ndim > 1 and name.endswith(".weight")
