"""Suspicious labels: those of images whose answer contradicts them, by a head that has not seen the image."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from export.fit.dataset import Part
from export.fit.report.judged import Judged
from export.fit.report.shown import shown_image
from export.parts import HELD_OUT, TRAIN
from model.fit.doubt import doubts
from model.preprocessing import Preprocessing

MOST = 24  # pictures


@dataclass(frozen=True, kw_only=True)
class Suspect:
    file: str
    split: str  # train or val
    label: str  # as given
    label_score: float
    proposed: str
    proposed_score: float
    doubt: float  # see model/fit/doubt.py


def suspects(train: Part, left_out: Tensor, judged: Judged) -> list[Suspect]:
    """Of the images to learn from, whose logits are `left_out` (N, C), and of held-out images, the most doubtful first.

    Labels of which one image was learned from are not suspected: left out, it is of a label that nothing knows.
    """
    classes = train.samples.classes
    several = torch.bincount(classes) > 1
    parts = (
        (TRAIN, train.files, left_out, classes),
        (HELD_OUT, judged.files, torch.from_numpy(judged.logits), torch.from_numpy(judged.right)),
    )
    found: list[Suspect] = []
    for split, files, logits, given in parts:
        doubt, scores = doubts(logits, given), logits.double().softmax(1)
        found += [
            Suspect(
                file=str(files[row]),
                split=split,
                label=judged.labels[given[row]],
                label_score=scores[row, given[row]].item(),
                proposed=judged.labels[scores[row].argmax()],
                proposed_score=scores[row].max().item(),
                doubt=doubt[row].item(),
            )
            for row in ((doubt > 0) & several[given]).nonzero().flatten().tolist()
        ]
    return sorted(found, key=lambda suspect: -suspect.doubt)


def pictures(found: Sequence[Suspect], preprocessing: Preprocessing) -> list[bytes]:
    """JPEGs of the first."""
    return [shown_image(Path(suspect.file), preprocessing).thumbnail for suspect in found[:MOST]]
