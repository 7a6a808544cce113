"""Regularised least squares in closed form, with the exact error of leaving each sample out."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

STRENGTHS = tuple(10.0 ** (power / 2) for power in range(-12, 7))  # of the regularisation, for each sample


@dataclass(frozen=True, kw_only=True)
class LinearMap:
    """A linear head. Logits are features @ weight.T + bias; the target of the right class is 1, of others -1."""

    weight: Tensor  # float64 (C, F)
    bias: Tensor  # float64 (C,)
    strength: float  # chosen among those given, for each sample
    left_out: Tensor  # float64 (N, C): logits of each sample by the map that is learned from all others


def least_squares(
    features: Tensor, classes: Tensor, *, count: int, strengths: tuple[float, ...] = STRENGTHS
) -> LinearMap:
    """The paper's few-shot protocol (section 4.1): regression from features (N, F) to targets of -1 and 1.

    Features are standardised first, as in big_vision `evaluators/fewshot_lsr.py`, and the bias is not regularised. One
    decomposition serves every strength, and gives every left-out prediction without learning anew: the residual of a
    sample divided by 1 - h, where h is its leverage. Among the strengths, the one with the smallest sum of squares of
    those residuals is taken.
    """
    x = features.double()
    mean, std = x.mean(dim=0), x.std(dim=0, correction=0)
    std = torch.where(std > 1e-6 * std.max(), std, torch.inf)  # a constant feature says nothing
    targets = 2 * F.one_hot(classes, count).double() - 1
    offset = targets.mean(dim=0)
    u, s, vh = torch.linalg.svd((x - mean) / std, full_matrices=False)  # (N, K), (K,), (K, F)
    projected = u.T @ (targets - offset)  # (K, C)

    def left_out(strength: float) -> Tensor:
        shrunk = s**2 / (s**2 + strength * len(x))  # (K,)
        residual = targets - offset - u @ (shrunk[:, None] * projected)
        leverage = 1 / len(x) + u**2 @ shrunk
        return targets - residual / (1 - leverage)[:, None]

    best = min(strengths, key=lambda strength: (left_out(strength) - targets).square().sum().item())
    standardised = vh.T @ ((s / (s**2 + best * len(x)))[:, None] * projected)  # (F, C)
    weight = (standardised / std[:, None]).T
    return LinearMap(weight=weight, bias=offset - weight @ mean, strength=best, left_out=left_out(best))
