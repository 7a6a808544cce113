"""Choosing by some of the images to learn from, so that the held-out images choose nothing."""

import math
from dataclasses import replace

import torch
from torch import Tensor

from model.fit.chance import Draw, generator
from model.fit.measure import logits
from model.fit.samples import Samples
from model.preprocessing import Preprocessing
from model.vit import VisionTransformer

SHARE = 1 / 5  # of the images
MOST = 2_000  # images: with these a difference of two points is seen


def divide(classes: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """Numbers of the samples to learn from and of those to choose by, given classes (N,).

    A share of each class is to choose by, and at least one of two. Where each class has one sample, there are none.
    """
    order = torch.randperm(len(classes), generator=generator(seed, Draw.CHOICE, 0))
    share, chooses = min(SHARE, MOST / len(classes)), torch.zeros(len(classes), dtype=torch.bool)
    for kind in classes.unique():
        rows = order[classes[order] == kind]
        count = max(round(share * len(rows)), 1) if len(rows) > 1 else 0
        chooses[rows[:count]] = True
    return (~chooses).nonzero().flatten(), chooses.nonzero().flatten()


def mirroring_harms(network: VisionTransformer, samples: Samples, preprocessing: Preprocessing) -> bool:
    """Whether mirrored samples get the right class less often, by more than a standard error (McNemar 1947)."""
    mirrored = replace(samples, pixels=samples.pixels.flip(2))
    right, still = (logits(network, of, preprocessing).argmax(1) == samples.classes for of in (samples, mirrored))
    lost, gained = int((right & ~still).sum()), int((still & ~right).sum())
    return lost - gained > math.sqrt(lost + gained)
