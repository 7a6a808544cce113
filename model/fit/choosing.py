"""Choosing by some of the images to learn from, so that the held-out images choose nothing."""

import math

import torch
from torch import Tensor

from model.fit.chance import Draw, generator

SHARE = 1 / 5  # of the images
MOST = 2_000  # images: with these a difference of two points is seen


def divide(classes: Tensor, seed: int, groups: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Numbers of the samples to learn from and of those to choose by, given classes (N,) and groups (N,) of one class.

    A share of each class is to choose by, and at least one of two. Groups stay together. Where each class has one
    group, there are none.
    """
    order = torch.randperm(len(classes), generator=generator(seed, Draw.CHOICE, 0))
    share, chooses = min(SHARE, MOST / len(classes)), torch.zeros(len(classes), dtype=torch.bool)
    place = order.argsort()  # of each sample, and in a group of its first
    if groups is not None:
        number = groups.unique(return_inverse=True)[1]
        place = torch.full_like(place, len(place)).scatter_reduce(0, number, place, "amin")[number]
    for kind in classes.unique():
        of_kind = classes == kind
        ordered = place[of_kind].sort().values
        taken = of_kind & (place <= ordered[max(round(share * len(ordered)), 1) - 1])
        if taken.sum() < len(ordered):
            chooses |= taken
    return (~chooses).nonzero().flatten(), chooses.nonzero().flatten()


def worse(logits: Tensor, than: Tensor, classes: Tensor) -> bool:
    """Whether logits (N, C) are right less often than others, by more than one standard error (McNemar 1947)."""
    now, before = (each.argmax(1) == classes for each in (logits, than))
    lost, gained = int((before & ~now).sum()), int((now & ~before).sum())
    return lost - gained > math.sqrt(lost + gained)
