"""Suspicious labels: those of images whose answer contradicts them, by a head that has not seen the image."""

from dataclasses import dataclass

import torch
from torch import Tensor

from export.fit.dataset import Part
from export.fit.report.judged import Judged
from export.parts import HELD_OUT, TRAIN
from model.fit.doubt import doubts


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

    Labels of which one image was learned from, or near-copies of one, are not suspected: left out, they are of a label
    that nothing knows.
    """
    classes = train.samples.classes
    several = torch.bincount(torch.stack([train.groups, classes]).unique(dim=1)[1]) > 1
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
