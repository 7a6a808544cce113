"""Ways to tell how unlike images are to those that were learned: N learned ones, M others, F features, C classes.

Each takes what the head reads of the learned images (N, F), their classes (N,), and the same of the others (M, F), and
gives a number for each of the others (M,): the larger, the more unlike.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import torch

from app.inference.familiarity import Classes, Distance, Numbers
from model.fit.least_squares import LinearMap, least_squares
from model.fit.probe import probe_temperature

Unlike = Callable[[Numbers, Classes, Numbers], Numbers]


def served(learned: Numbers, classes: Classes, others: Numbers) -> Numbers:
    """The product's: the relative Mahalanobis distance, and doubt of which class is the nearest."""
    return Distance.to(learned, classes).of(others)


def relative(learned: Numbers, classes: Classes, others: Numbers) -> Numbers:
    """To the nearest mean of a class, less that to the mean of all (Ren et al. 2021, arXiv 2106.09022)."""
    distance = Distance.to(learned, classes)
    each = zip(distance.directions, distance.offsets, strict=True)
    alone = [replace(distance, directions=direction[None], offsets=offset[None]) for direction, offset in each]
    return np.asarray(np.min([to_one.of(others) for to_one in alone], axis=0))


def to_one_mean(learned: Numbers, classes: Classes, others: Numbers) -> Numbers:
    """The Mahalanobis distance without labels."""
    return Distance.to(learned, np.zeros_like(classes)).of(others)


def to_a_class(learned: Numbers, classes: Classes, others: Numbers) -> Numbers:
    """To the nearest mean of a class, all with one covariance (Lee et al. 2018, arXiv 1807.03888)."""
    return relative(learned, classes, others) + to_one_mean(learned, classes, others)


def doubt(learned: Numbers, classes: Classes, others: Numbers) -> Numbers:
    """Of the label that a probe finds most likely (Hendrycks and Gimpel 2017, arXiv 1610.02136)."""
    logits = _logits(learned, classes, others)
    return np.asarray(np.logaddexp.reduce(logits, axis=1) - logits.max(1))


def energy(learned: Numbers, classes: Classes, others: Numbers) -> Numbers:
    """Of the logits of a probe (Liu et al. 2020, arXiv 2010.03759)."""
    return np.asarray(-np.logaddexp.reduce(_logits(learned, classes, others), axis=1))


def residual(learned: Numbers, classes: Classes, others: Numbers, *, width: int) -> Numbers:
    """What lies outside of the widest directions, and the energy (ViM, Wang et al. 2022, arXiv 2203.10807)."""
    x, z = _standardised(learned, others)
    widest = np.linalg.svd(x, full_matrices=False)[2][:width]
    outside, of_learned = (np.linalg.norm(rows - rows @ widest.T @ widest, axis=1) for rows in (z, x))
    alpha = _logits(learned, classes, learned).max(1).mean() / of_learned.mean()
    return np.asarray(alpha * outside + energy(learned, classes, others))


def nearest(learned: Numbers, classes: Classes, others: Numbers) -> Numbers:
    """The angle to the nearest image (Sun et al. 2022, arXiv 2204.06507, with k = 1)."""
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in _standardised(learned, others)]
    return np.asarray(-(unit[1] @ unit[0].T).max(1))


def _standardised(learned: Numbers, others: Numbers) -> tuple[Numbers, Numbers]:
    mean, std = learned.mean(0), learned.std(0)
    std = np.where(std > 1e-6 * std.max(), std, np.inf)
    return (learned - mean) / std, (others - mean) / std


def _probe(learned: Numbers, classes: Classes) -> LinearMap:
    return least_squares(torch.from_numpy(learned), torch.from_numpy(classes), count=int(classes.max()) + 1)


def _logits(learned: Numbers, classes: Classes, others: Numbers) -> Numbers:
    """Of a probe with its temperature."""
    head = _probe(learned, classes)
    logits = others @ head.weight.numpy().T + head.bias.numpy()
    return np.asarray(logits / probe_temperature(head.left_out, torch.from_numpy(classes)))


DISTANCES: dict[str, Unlike] = {
    "the distance that is served": served,
    "relative Mahalanobis distance": relative,
    "Mahalanobis distance to a class": to_a_class,
    "Mahalanobis distance to the mean": to_one_mean,
    "the best label's score": doubt,
    "energy": energy,
    "ViM": partial(residual, width=32),
    "nearest image": nearest,
}
