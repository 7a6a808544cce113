"""The optimisers of the paper, and the learning rate of each layer."""

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from model.vit import VisionTransformer

Kind = Literal["sgd", "adamw"]
MOMENTUM = 0.9  # paper, appendix B.1.1
BETAS = (0.9, 0.999)  # paper, section 4.1


def optimiser(
    kind: Kind,
    network: VisionTransformer,
    *,
    rate: float,
    weight_decay: float = 0.0,
    layer_decay: float = 1.0,
    beside: Iterable[nn.Module] = (),
) -> Optimizer:
    """SGD with momentum, or Adam with decoupled weight decay. Only matrices decay, as in big_vision.

    `beside` are modules that learn with the network, at the same rate.
    """
    groups = parameter_groups(network, rate=rate, weight_decay=weight_decay, layer_decay=layer_decay)
    groups += [{"params": list(module.parameters()), "lr": rate, "weight_decay": weight_decay} for module in beside]
    if kind == "sgd":
        return torch.optim.SGD(groups, momentum=MOMENTUM, fused=True)
    return torch.optim.AdamW(groups, betas=BETAS, fused=True)


def parameter_groups(
    network: VisionTransformer, *, rate: float, weight_decay: float, layer_decay: float
) -> list[dict[str, Any]]:
    """The parameters by learning rate and weight decay.

    The rate of the head and the last norm is `rate`, and each layer below has `layer_decay` times that of the one above
    it (BEiT, arXiv 2106.08254, section 3.2); the embedding is the lowest.
    """
    groups: dict[tuple[int, bool], list[Tensor]] = defaultdict(list)
    depth = network.config.depth
    for name, parameter in network.named_parameters():
        groups[depth + 1 - layer_of(name, depth), decays(name, parameter)].append(parameter)
    return [
        {"params": parameters, "lr": rate * layer_decay**below, "weight_decay": weight_decay if decaying else 0.0}
        for (below, decaying), parameters in groups.items()
    ]


def layer_of(name: str, depth: int) -> int:
    """0 for the embedding, from 1 for the blocks, and depth + 1 for all that follows them."""
    if found := re.match(r"blocks\.(\d+)\.", name):
        return int(found[1]) + 1
    embedding = name.startswith(("patch_embed.", "norm_pre.", "pos_embed")) or name.endswith("_token")
    return 0 if embedding else depth + 1


def decays(name: str, parameter: Tensor) -> bool:
    """Matrices and filters do; biases, norms, tokens, positions and scales of layers do not."""
    return parameter.ndim > 1 and name.endswith(".weight")
