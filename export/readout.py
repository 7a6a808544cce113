"""A linear reading of tokens, followed backwards through the layers that computed them.

Linear layers need no approximation. A norm is linear once its scale is held at its actual value; so is an activation f,
as the factor (f(z) - f(0)) / z. The part of a bias, and of f(0), is kept as a constant.
In shapes: B batch, R readers, K classes, n tokens, D width.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor, nn

from export.precision import QuantisedLinear
from export.rewrite import Linear
from model.norm import LayerScale, UnitNorm

SMALL = 1e-4  # below, tanh(z) / z is 1 to the last bit of a float32, and the slope of others that at 0


@dataclass(frozen=True, kw_only=True)
class Readout:
    """K numbers as a function of tokens x: constant + sum over r and i of weights[r, i] * direction[r, k] . x[i]."""

    direction: Tensor  # (B, R, K, D)
    weights: Tensor  # (B, R, n)
    constant: Tensor  # (B, K)

    def of(self, tokens: Tensor) -> Tensor:
        """The numbers (B, K) for tokens (B, n, D), without the constant."""
        pooled = self.weights @ tokens  # (B, R, D)
        return (self.direction @ pooled.unsqueeze(-1)).squeeze(-1).sum(1)

    def before(self, layer: nn.Module, entered: Tensor) -> Self:
        """The same numbers as a function of the input of `layer`, `entered` (B, n, D).

        Raises TypeError for a layer that is not linear.
        """
        match layer:
            case nn.Identity():
                return self
            case LayerScale():
                return replace(self, direction=self.direction * layer.gamma)
            case Linear() | QuantisedLinear():
                # Not F.linear: OpenVINO multiplies a matrix both ways wrongly (tests/support/openvino_faults.py).
                direction, weight = self.direction, layer.weight
                if isinstance(layer, QuantisedLinear):  # OpenVINO with streams leaves a scale beside a weight out
                    direction, weight = direction * layer.scale, layer.integers
                flat = (weight.float() @ direction.flatten(0, 2).t()).t()
                biased = self._biased(layer.bias)
                return replace(biased, direction=flat.unflatten(0, self.direction.shape[:3]))
            case nn.LayerNorm():
                scaled = self.direction * layer.weight
                deviation = entered - entered.mean(-1, keepdim=True)
                rate = torch.rsqrt((deviation * deviation).mean(-1) + layer.eps)  # (B, n)
                centred = scaled - scaled.mean(-1, keepdim=True)
                return replace(self._biased(layer.bias), direction=centred, weights=self.weights * rate.unsqueeze(1))
            case nn.RMSNorm():
                rate = torch.rsqrt((entered * entered).mean(-1) + (layer.eps or 0.0))
                return replace(self, direction=self.direction * layer.weight, weights=self.weights * rate.unsqueeze(1))
            case UnitNorm():
                rate = 1 / entered.norm(dim=-1)  # (B, n)
                return replace(self, weights=self.weights * rate.unsqueeze(1))
        raise TypeError(f"{type(layer).__name__} is not linear")

    def before_activation(self, activation: Callable[[Tensor], Tensor], entered: Tensor) -> Self:
        """The same numbers as a function of the input of an activation, one vector (B, D)."""
        z = torch.where(entered.abs() < SMALL, torch.where(entered < 0, -SMALL, SMALL), entered)
        at_zero = activation(torch.zeros(()))
        constant = self.constant + (self.direction.sum(-1) * at_zero * self.weights.sum(-1, keepdim=True)).sum(1)
        direction = self.direction * ((activation(z) - at_zero) / z)[:, None, None]
        return replace(self, direction=direction, constant=constant)

    def scaled(self, factor: float) -> Self:
        return replace(self, direction=factor * self.direction, constant=factor * self.constant)

    def _biased(self, bias: Tensor | None) -> Self:
        if bias is None:
            return self
        # As a matrix of one column: OpenVINO cannot scale a product with a vector (tests/support/openvino_faults.py).
        of_bias = (self.direction @ bias.float().unsqueeze(-1)).squeeze(-1)  # (B, R, K)
        each = of_bias * self.weights.sum(-1, keepdim=True)
        return replace(self, constant=self.constant + each.sum(1))
