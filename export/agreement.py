"""The answers of the float32 network and of the lean graph for the same images: their agreement, and their accuracy."""

import time
from dataclasses import dataclass
from functools import partial
from math import exp, lgamma, log, log1p
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from app.inference.engine import Engine, Outputs
from app.inference.scoring import scores
from export.images import Images
from export.measured import Agreement
from export.reference import normalised
from model.checkpoints.checkpoint import Checkpoint
from model.progress import track

BATCH = 8
SIGNIFICANT = 0.001  # the probability that labels drawn at random seem to be right
TIME_LIMIT_S = {"drawn": 60.0, "folder": 600.0}  # no further batch is begun after it


class Both(NamedTuple):
    """What both give for the same images, (images, numbers) each."""

    expected: npt.NDArray[np.float32]  # of PyTorch: logits, or the embeddings of a network without a head
    lean: Outputs  # of the lean graph


@dataclass(frozen=True, kw_only=True)
class Answers:
    """Logits (images, classes) of both, and the right labels (images,) where they are known."""

    expected: npt.NDArray[np.float32]  # of PyTorch
    lean: npt.NDArray[np.float32]  # of the lean graph
    labels: npt.NDArray[np.int64] | None


def answers(both: Both, images: Images) -> Answers:
    """Of a network with a head."""
    labels = None if images.labels is None else images.labels[: len(both.expected)]
    return Answers(expected=both.expected, lean=both.lean["logits"], labels=labels)


def of_both(checkpoint: Checkpoint, images: Images, engine: Engine) -> Both:
    """Of the judged images, or of as many of them as TIME_LIMIT_S allows."""
    end = time.monotonic() + TIME_LIMIT_S[images.source]
    expected: list[npt.NDArray[np.float32]] = []
    lean: list[Outputs] = []
    for start in track(range(0, len(images.judged), BATCH), "comparing with fp32"):
        if lean and time.monotonic() > end:
            break
        batch = images.judged[start : start + BATCH]
        with torch.inference_mode():
            expected.append(checkpoint.model(normalised(batch, checkpoint)).numpy())
        lean.append(engine.run("classify", batch))
    return Both(np.concatenate(expected), {name: np.concatenate([run[name] for run in lean]) for name in lean[0]})


def chance(answers: Answers) -> str:
    """Why the labels are probably wrong: the answers are right no more often than by chance. Empty if they are not, or
    if the images are so few that chance alone could get all of them right.
    """
    if answers.labels is None:
        return ""
    by_chance = 1 / answers.lean.shape[1]
    right, of = int((answers.lean.argmax(1) == answers.labels).sum()), len(answers.labels)
    if at_least(right, of, by_chance) < SIGNIFICANT or at_least(of, of, by_chance) >= SIGNIFICANT:
        return ""
    return (
        f"the label is right on {right / of:.2%} of {of} images, which is no more than chance "
        f"({by_chance:.2%}): the labels of these folders are probably not those of this model"
    )


def at_least(right: int, of: int, share: float) -> float:
    """The probability of so many right ones, or more, if each is right by this chance (exact, binomial)."""
    if not 0 < share < 1:
        return float(right <= of * share)
    ways = (lgamma(of + 1) - lgamma(k + 1) - lgamma(of - k + 1) + k * log(share) + (of - k) * log1p(-share)
            for k in range(right, of + 1))  # fmt: skip
    return min(1.0, sum(map(exp, ways)))


def agreement(answers: Answers, images: Images, checkpoint: Checkpoint) -> Agreement:
    """Shares of the compared images, and differences of the scores as they are served."""
    expected, lean = answers.expected.argmax(1), answers.lean.argmax(1)
    served = partial(scores, kind=checkpoint.score, temperature=checkpoint.temperature)
    pairs = zip(answers.lean, answers.expected, strict=True)
    differences = [float(np.abs(served(ours) - served(theirs)).max()) for ours, theirs in pairs]
    known = answers.labels is not None
    return Agreement(
        pictures=len(lean),
        source=images.source,
        ranges=len(images.ranges),
        top1=float(np.mean(lean == expected)),
        probability_mean=float(np.mean(differences)),
        probability_max=max(differences),
        accuracy=float(np.mean(lean == answers.labels)) if known else None,
        accuracy_fp32=float(np.mean(expected == answers.labels)) if known else None,
    )
