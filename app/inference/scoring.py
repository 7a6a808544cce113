"""From logits to scores and ranked labels."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, Field

from app.bundle import Manifest
from app.inference.digits import digits

TOP_K = 5  # labels, unless a request says otherwise

Kind = Literal["softmax", "sigmoid"]
Logits = npt.NDArray[np.floating]
Scores = npt.NDArray[np.float64]


class Prediction(BaseModel):
    label: str = Field(examples=["star"])
    index: int = Field(examples=[10])
    score: float = Field(examples=[0.9997])


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """How the logits (classes,) of a model become scores and labels. A model without a head has no classes."""

    labels: tuple[str, ...]
    kind: Kind
    temperature: float = 1.0

    @classmethod
    def of(cls, manifest: Manifest) -> Self:
        return cls(labels=manifest.labels, kind=manifest.score, temperature=manifest.temperature)

    def scores(self, logits: Logits) -> Scores:
        """Probabilities (classes,) of logits (classes,)."""
        return scores(logits, self.kind, self.temperature)

    def best(self, logits: Logits) -> tuple[int, float]:
        """The most likely class of logits (classes,), at least one, and its score: `rank` of one, in a fraction of its
        time, and in the precision of the logits.
        """
        index = int(logits.argmax())
        if self.kind == "sigmoid":
            return index, float(scores(logits[index], self.kind, self.temperature))
        return index, 1 / float(np.add.reduce(np.exp((logits - logits[index]) / self.temperature)))

    def predictions(self, scores: Scores, classes: Iterable[int]) -> list[Prediction]:
        """The predictions of `classes`, in their order, from the scores (classes,) of all."""
        return [Prediction(label=self.labels[i], index=int(i), score=digits(scores[i])) for i in classes]

    def rank(self, logits: Logits, *, top_k: int | None, threshold: float = 0.0) -> list[Prediction]:
        """The labels with a score of at least `threshold`, at most `top_k` of them, the most likely first.

        Equal logits are in the order of the model.
        """
        probabilities = self.scores(logits)
        return self.predictions(probabilities, most_likely(logits, top_k, among=probabilities >= threshold))


def most_likely(
    logits: Logits, count: int | None, *, among: npt.NDArray[np.bool_] | bool = True
) -> npt.NDArray[np.intp]:
    """The classes of the largest logits (classes,), at most `count` of those `among`, the most likely first. Equal
    logits are in the order of the model.
    """
    kth = np.partition(logits, -count)[-count] if count is not None and count < len(logits) else -np.inf
    # Only these are sorted, of perhaps thousands. They include ties with the last.
    largest = np.flatnonzero((logits >= kth) & among)
    return largest[np.argsort(-logits[largest], kind="stable")][:count]


def scores(logits: Logits, kind: Kind, temperature: float = 1.0) -> Scores:
    """Probabilities (classes,) of logits (classes,), which are divided by `temperature` first.

    softmax: they sum to 1. sigmoid: each label on its own.
    """
    z = logits.astype(np.float64) / temperature
    if kind == "sigmoid":
        return np.exp(-np.logaddexp(0.0, -z))
    exponentials = np.exp(z - z.max(initial=-np.inf))
    return np.asarray(exponentials / exponentials.sum())
