"""The feed-forward half of a block."""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.config import ViTConfig
from model.norm import norm_layer


def quick_gelu(x: Tensor) -> Tensor:
    """OpenAI's sigmoid approximation of GELU (CLIP `model.py`)."""
    return x * torch.sigmoid(1.702 * x)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),  # flax's default
    "quick_gelu": quick_gelu,
    "silu": F.silu,
}

OF_VECTORS: dict[str, Callable[[Tensor], Tensor]] = {  # of a pooled vector
    **ACTIVATIONS,
    "linear": lambda x: x,
    "relu": F.relu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
}


class Mlp(nn.Module):
    """Two linear layers with an activation between them, applied to each token.

    With a gate, fc1 computes twice the hidden width: activation(first half) * second half (SwiGLU, arXiv 2002.05202;
    DINOv2's `w12`, timm's SwiGLUPacked).
    """

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.activation, self.gated = ACTIVATIONS[config.activation], config.gated_mlp
        self.fc1 = nn.Linear(config.width, config.mlp_dim * (2 if self.gated else 1))
        self.norm = norm_layer(config, config.mlp_dim) if config.inner_norm or config.mlp_norm else nn.Identity()
        self.fc2 = nn.Linear(config.mlp_dim, config.width)

    def forward(self, tokens: Tensor) -> Tensor:
        hidden: Tensor = self.fc1(tokens)
        if self.gated:
            gate, value = hidden.chunk(2, dim=-1)
            hidden = self.activation(gate) * value
        else:
            hidden = self.activation(hidden)
        return self.fc2(self.norm(hidden))
