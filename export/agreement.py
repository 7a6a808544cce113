"""The answers of the float32 network and of the lean graph for the same images: their agreement, and their accuracy."""

import time
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import torch

from app.bundle import Agreement
from app.inference.engine import Engine
from app.inference.scoring import scores
from export.images import Images
from export.progress import bars
from export.reference import normalised
from model.checkpoints.checkpoint import Checkpoint

BATCH = 8
TIME_LIMIT_S = {"drawn": 60.0, "folder": 600.0}  # no further batch is begun after it


@dataclass(frozen=True, kw_only=True)
class Answers:
    """Logits (images, classes) of both, and the right labels (images,) where they are known."""

    expected: npt.NDArray[np.float32]  # of PyTorch
    lean: npt.NDArray[np.float32]  # of the lean graph
    labels: npt.NDArray[np.int64] | None


def answers(checkpoint: Checkpoint, images: Images, engine: Engine) -> Answers:
    """Answers for the judged images, or for as many of them as TIME_LIMIT_S allows."""
    end = time.monotonic() + TIME_LIMIT_S[images.source]
    expected: list[npt.NDArray[np.float32]] = []
    lean: list[npt.NDArray[np.float32]] = []
    with bars() as shown:
        for start in shown.track(range(0, len(images.judged), BATCH), description="comparing with fp32"):
            if lean and time.monotonic() > end:
                break
            batch = images.judged[start : start + BATCH]
            with torch.inference_mode():
                expected.append(checkpoint.model(normalised(batch, checkpoint)).numpy())
            lean.append(engine.run("classify", batch)["logits"])
    compared = sum(map(len, lean))
    return Answers(
        expected=np.concatenate(expected),
        lean=np.concatenate(lean),
        labels=None if images.labels is None else images.labels[:compared],
    )


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
