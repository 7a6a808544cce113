"""How many labels that were made wrong are the most doubtful, by several orders, and how many are named."""

from statistics import fmean

import torch
from torch import Tensor

from lab.benchmarks.record import Row, Rows
from lab.real.data import Data
from lab.real.frozen import Frozen, frozen
from model.fit.doubt import CLEAR, doubts
from model.fit.least_squares import least_squares
from model.fit.probe import probe_temperature

SEEDS = 10  # of which labels are made wrong
SHARE = 45  # one label of 45: 40 of the digits


def measure(data: Data) -> Rows:
    return [_row(images) for images in frozen(data)]


def _row(images: Frozen) -> Row:
    made = len(images.classes) // SHARE + 1
    found: dict[str, list[int]] = {}
    named, rightly = [], []
    for seed in range(SEEDS):
        classes, wrong = with_errors(images.classes, made, seed)
        logits = _left_out(images.features, classes)
        for name, order in _orders(logits, classes).items():
            found.setdefault(name, []).append(int(wrong[order[:made]].sum()))
        clear = doubts(logits, classes) >= CLEAR
        named.append(int(clear.sum()))
        rightly.append(int((clear & wrong).sum()))
    others = doubts(_left_out(images.features, images.classes), images.classes) >= CLEAR
    return {
        "images": f"{len(images.classes):,} {images.images}",
        "made wrong": made,
        **{f"found by {name}": f"{fmean(counts):.1f} ({min(counts)})" for name, counts in found.items()},
        "named": f"{fmean(named):.1f}",
        "rightly": f"{fmean(rightly):.1f}",
        "named if none was made wrong": int(others.sum()),
    }


def with_errors(right: Tensor, made: int, seed: int) -> tuple[Tensor, Tensor]:
    """Classes, some of which are others, and which of them, (N,) bool."""
    chance = torch.Generator().manual_seed(seed)
    rows = torch.randperm(len(right), generator=chance)[:made]
    classes, wrong, count = right.clone(), torch.zeros(len(right), dtype=torch.bool), int(right.max()) + 1
    classes[rows] = (classes[rows] + torch.randint(1, count, (made,), generator=chance)) % count
    wrong[rows] = True
    return classes, wrong


def _left_out(features: Tensor, classes: Tensor) -> Tensor:
    """Logits (N, C) of each image by the probe of all others."""
    head = least_squares(features, classes, count=int(classes.max()) + 1)
    return head.left_out / probe_temperature(head.left_out, classes)


def _orders(logits: Tensor, classes: Tensor) -> dict[str, Tensor]:
    """The rows, the most doubtful first: the product's order, and the three of cleanlab.rank, which take scores."""
    scores = logits.softmax(1)
    own = scores.gather(1, classes[:, None]).squeeze(1)
    return {
        "doubt": doubts(logits, classes).argsort(descending=True),
        "score": own.argsort(),
        "margin of scores": (own - scores.scatter(1, classes[:, None], -torch.inf).amax(1)).argsort(),
        "score / entropy": (own / torch.special.entr(scores).sum(1).clamp_min(1e-6)).argsort(),
    }
