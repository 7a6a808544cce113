"""Layer-wise relevance propagation: AttnLRP, and CP-LRP before it."""

import torch
from torch import Tensor, nn

from model.mlp import Mlp
from tests.benchmarks.maps.passes import Rules

SMALL = 1e-6


class AttnLrp(Rules):
    """Achtibat et al. 2024, arXiv 2402.05602, section 3.2.

    Linear layers: the epsilon rule, whose epsilon only keeps a division by zero away. Softmax: its own gradient
    (Proposition 3.1). Products of two variables: half of the relevance for each (Proposition 3.3). Norms and
    activations: all of it passes (Proposition 3.4, and the identity rule of section 3.2).
    """

    def norm(self, layer: nn.Module, x: Tensor) -> Tensor:
        assert isinstance(layer, nn.LayerNorm)
        centred = x - x.mean(-1, keepdim=True)
        scale = (x.var(-1, unbiased=False, keepdim=True) + layer.eps).sqrt().detach()
        out: Tensor = centred / scale * layer.weight + layer.bias
        return out

    def product(self, a: Tensor, b: Tensor) -> Tensor:
        out = a @ b
        return (out + out.detach()) / 2

    def activation(self, layer: Mlp, x: Tensor) -> Tensor:
        factor = torch.where(x.abs() < SMALL, 0.5, super().activation(layer, x) / x)
        return x * factor.detach()


class CpLrp(AttnLrp):
    """Ali et al. 2022, arXiv 2202.07304: attention and the scales of norms are taken as constants."""

    def softmax(self, scores: Tensor) -> Tensor:
        return scores.softmax(-1).detach()

    def product(self, a: Tensor, b: Tensor) -> Tensor:
        return a @ b
