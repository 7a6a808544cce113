"""How unlike an image is to those that are known, from several layers: virtual-logit matching (ViM, Wang et al. 2022,
arXiv 2203.10807).

In shapes: B batch, N known images, T tokens, D width, E width of an embedding, F features, K directions, C labels.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.config import ViTConfig

LAYERS = 6  # the last ones, or all; with fewer, new kinds are found less well
SUBSPACE = 64  # of the widest directions: what lies outside of them is unlike
DIRECTIONS = 256  # the widest, from which labels are read
STRENGTH = 0.05  # of the regularisation of that reading, as a share of the images' mean squared length
ODDS = 15  # of a label whose target is 1 to all others together, whose target is -1
CONSTANT = 1e-6  # of the largest standard deviation: a feature that varies less says nothing


def features(config: ViTConfig, entering: Sequence[Tensor], embedding: Tensor) -> Tensor:
    """The embedding (B, E), and of the tokens `entering` each of the last blocks, (B, T, D), the class token, if there
    is one, and the mean of the patches: (B, F). Norms have no weights, as features are standardised.
    """
    parts = [embedding]
    for tokens in entering[-LAYERS:]:
        normed = F.layer_norm(tokens, tokens.shape[-1:], eps=config.norm_eps)
        parts += [normed[:, 0]] if config.class_token else []
        parts.append(normed[:, len(config.prefix) :].mean(dim=1))
    return torch.cat(parts, dim=-1)


class Unlike(nn.Module):
    """Features (B, F) to how unlike the images are, (B, 1): `rate` times the length of what lies outside of the
    subspace, less the energy of the logits of labels. Without labels, the length alone.
    """

    def __init__(self, *, features: int, directions: int, labels: int) -> None:
        super().__init__()
        self.mean, self.scale = nn.Buffer(torch.zeros(features)), nn.Buffer(torch.ones(features))
        self.directions = nn.Buffer(torch.zeros(features, directions))
        self.subspace = nn.Buffer(torch.zeros(directions, 1))  # 1 for those that span it
        self.weight, self.bias = nn.Buffer(torch.zeros(directions, labels)), nn.Buffer(torch.zeros(labels))
        self.rate = nn.Buffer(torch.ones(1))

    def forward(self, features: Tensor) -> Tensor:
        outside, logits = self.parts(features)
        if not logits.shape[1]:
            return outside
        largest = logits.amax(dim=1, keepdim=True)
        energy = largest + (logits - largest).exp().sum(dim=1, keepdim=True).log()
        return self.rate * outside - energy

    def parts(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """The length of what lies outside, (B, 1), and the logits (B, C)."""
        z = (features - self.mean) * self.scale
        along = z @ self.directions
        outside = (z * z).sum(dim=1, keepdim=True) - (along * along) @ self.subspace
        return outside.clamp(min=0).sqrt(), along @ self.weight + self.bias

    @classmethod
    def learned(cls, known: Tensor, classes: Tensor) -> "Unlike":
        """From features of the known images, float64 (N, F), and the labels that the model gives them, (N,).

        Labels are read by regularised least squares, whose targets are 1 and -1. One label is none.
        """
        labels, place = classes.unique(return_inverse=True)
        mean, spread = known.mean(dim=0), known.std(dim=0, correction=0)
        varies = spread > CONSTANT * spread.max()
        scale = torch.where(varies, 1 / torch.where(varies, spread, 1), 0)
        z = (known - mean) * scale
        squares, images = torch.linalg.eigh(z @ z.T)  # in rising order; (N,), (N, N)
        wide = (squares > CONSTANT * squares[-1]).nonzero().flatten().flip(0)[:DIRECTIONS]
        lengths = squares[wide].sqrt()
        directions = z.T @ (images[:, wide] / lengths)  # (F, K)
        targets = 2 * F.one_hot(place).double() - 1
        offset = targets.mean(dim=0)
        shrunk = lengths / (squares[wide] + STRENGTH * squares.sum() / len(z))
        weight = shrunk[:, None] * (images[:, wide].T @ (targets - offset))  # (K, C)
        within = min(SUBSPACE, len(wide) // 2)  # else nothing of few images or few features would lie outside
        subspace = (torch.arange(len(wide)) < within).double()[:, None]
        if within + len(labels) < len(wide):  # then the matrices in one are smaller
            directions = torch.cat([directions[:, :within], directions @ weight], dim=1)
            subspace = (torch.arange(within + len(labels)) < within).double()[:, None]
            weight = torch.cat([torch.zeros(within, len(labels)), torch.eye(len(labels))]).double()
        hardness = 2 / torch.tensor(ODDS * len(labels)).log()
        several = len(labels) if len(labels) > 1 else 0
        unlike = cls(features=len(mean), directions=directions.shape[1], labels=several).double()
        state = {"mean": mean, "scale": scale, "directions": directions, "subspace": subspace, "rate": torch.ones(1)}
        state |= {"weight": weight[:, :several] / hardness, "bias": offset[:several] / hardness}
        unlike.load_state_dict(state)
        outside, logits = unlike.parts(known)
        if several:
            unlike.rate.copy_(logits.amax(dim=1).mean() / outside.mean().clamp(min=CONSTANT))
        return unlike
