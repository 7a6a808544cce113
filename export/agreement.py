"""Agreement of the lean graph with the float32 network, and the accuracy of both."""

from functools import partial

import numpy as np

from app.bundle import Agreement
from app.inference.scoring import scores
from export.answers import Answers
from export.images import Images
from model.checkpoints.checkpoint import Checkpoint


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
