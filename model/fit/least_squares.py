"""Regularised least squares in closed form, with the exact error of leaving samples out."""

from collections import defaultdict
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

STRENGTHS = tuple(10.0 ** (power / 2) for power in range(-12, 7))  # of the regularisation, for each sample
ROWS = 4096  # of groups that are solved at a time


@dataclass(frozen=True, kw_only=True)
class LinearMap:
    """A linear head. Logits are features @ weight.T + bias; the target of the right class is 1, of others -1."""

    weight: Tensor  # float64 (C, F)
    bias: Tensor  # float64 (C,)
    strength: float  # chosen among those given, for each sample
    left_out: Tensor  # float64 (N, C): logits of each sample by the map that is learned from all other groups


def least_squares(
    features: Tensor,
    classes: Tensor,
    *,
    count: int,
    groups: Tensor | None = None,
    weights: Tensor | None = None,
    strengths: tuple[float, ...] = STRENGTHS,
) -> LinearMap:
    """The paper's few-shot protocol (section 4.1): regression from features (N, F) to targets of -1 and 1.

    Samples have `weights` (N,) of 1 in the mean; by default every class weighs as much as another. Features are
    standardised first, as in big_vision `evaluators/fewshot_lsr.py`, and the bias is not regularised. One decomposition
    serves every strength, and gives every left-out prediction without learning anew: the residuals r of a group g of
    samples, (N,) in `groups`, are (I - H_gg)^-1 r where it is left out, with the block H_gg of the hat matrix. Each
    sample is a group if none are given. Among the strengths, the one with the smallest sum of squares of those
    residuals is taken.
    """
    x, weights = features.double(), (balanced(classes) if weights is None else weights)[:, None]
    mean = (weights * x).mean(dim=0)
    std = (weights * (x - mean).square()).mean(dim=0).sqrt()
    std = torch.where(std > 1e-6 * std.max(), std, torch.inf)  # a constant feature says nothing
    targets = 2 * F.one_hot(classes, count).double() - 1
    offset, root = (weights * targets).mean(dim=0), weights.sqrt()
    u, s, vh = torch.linalg.svd(root * (x - mean) / std, full_matrices=False)  # (N, K), (K,), (K, F)
    projected = u.T @ (root * (targets - offset))  # (K, C)
    blocks = _by_size(torch.arange(len(x)) if groups is None else groups)

    def left_out(strength: float) -> Tensor:
        """Residuals (N, C)."""
        shrunk = s**2 / (s**2 + strength * len(x))  # (K,)
        residual = root * (targets - offset) - u @ (shrunk[:, None] * projected)
        for rows in blocks:
            of_block, roots = u[rows], root[rows]  # (B, g, K), (B, g, 1)
            hat = (of_block * shrunk) @ of_block.mT + roots @ roots.mT / len(x)
            residual[rows] = torch.linalg.solve(torch.eye(rows.shape[1]) - hat, residual[rows])
        return residual / root

    best = min(strengths, key=lambda strength: left_out(strength).square().sum().item())
    standardised = vh.T @ ((s / (s**2 + best * len(x)))[:, None] * projected)  # (F, C)
    weight = (standardised / std[:, None]).T
    return LinearMap(weight=weight, bias=offset - weight @ mean, strength=best, left_out=targets - left_out(best))


def balanced(classes: Tensor) -> Tensor:
    """The weight of each sample, float64 (N,): 1 in the mean, with the same sum for every class that there is."""
    weights = 1 / torch.bincount(classes).double()[classes]
    return weights / weights.mean()


def _by_size(groups: Tensor) -> list[Tensor]:
    """The rows of groups of one size, (B, size), at most ROWS together unless one group has more."""
    of_size: dict[int, list[Tensor]] = defaultdict(list)
    for rows in groups.argsort(stable=True).split(groups.unique(return_counts=True)[1].tolist()):
        of_size[len(rows)].append(rows)
    return [part for size, rows in of_size.items() for part in torch.stack(rows).split(max(1, ROWS // size))]
