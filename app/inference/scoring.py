"""From logits to ranked labels."""

from typing import Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel


class Prediction(BaseModel):
    label: str
    index: int
    score: float


def scores(
    logits: npt.NDArray[np.floating], kind: Literal["softmax", "sigmoid"], temperature: float = 1.0
) -> npt.NDArray[np.float64]:
    """Probabilities (classes,) of logits (classes,), which are divided by `temperature` first.

    softmax: they sum to 1. sigmoid: each label on its own.
    """
    z = logits.astype(np.float64) / temperature
    if kind == "sigmoid":
        return np.exp(-np.logaddexp(0.0, -z))
    exponentials = np.exp(z - z.max())
    return np.asarray(exponentials / exponentials.sum())


def rank(
    logits: npt.NDArray[np.floating],
    labels: tuple[str, ...],
    kind: Literal["softmax", "sigmoid"],
    top_k: int | None,
    threshold: float = 0.0,
    temperature: float = 1.0,
) -> list[Prediction]:
    """The labels with a score of at least `threshold`, at most `top_k` of them, the most likely first.

    `logits` is (classes,). Equal logits are in the order of the model.
    """
    probabilities = scores(logits, kind, temperature)
    kth = np.partition(logits, -top_k)[-top_k] if top_k is not None and top_k < len(logits) else -np.inf
    largest = np.flatnonzero(
        (logits >= kth) & (probabilities >= threshold)
    )  # sort only these, of perhaps thousands; includes ties with the last
    best = largest[np.argsort(-logits[largest], kind="stable")][:top_k]
    return [Prediction(label=labels[i], index=int(i), score=float(probabilities[i])) for i in best]
