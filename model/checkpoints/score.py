"""The score of the labels: a softmax, which sums to 1, or a sigmoid of each label by itself."""

from typing import Literal, get_args

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.facts import Facts

Score = Literal["softmax", "sigmoid"]
IMAGENET_21K = 21843  # classes of Google's version, in every library that has its weights


def resolve_score(facts: Facts, classes: int, *, stated: Score | None = None, origin: str = "") -> Score:
    """The score that the checkpoint states at `origin`, else that which training with so many classes implies.

    Google trained its ImageNet-21k models with a sigmoid for each label (big_vision configs/vit_i21k.py,
    `config.loss = 'sigmoid_xent'`): softmax of their logits is not a probability that was ever fitted.
    """
    if stated is not None:
        score: Score = stated
    elif classes == IMAGENET_21K:
        score, origin = "sigmoid", "trained on ImageNet-21k with sigmoid_xent: big_vision configs/vit_i21k.py"
    elif classes == 1:
        score, origin = "sigmoid", "one class, whose softmax is always 1"
    else:
        score, origin = "softmax", "the usual loss of classifiers"
    score = facts.resolve("score", score, origin)
    if score not in get_args(Score):
        raise CheckpointError(f"--set score={score}: it is softmax or sigmoid")
    return score
