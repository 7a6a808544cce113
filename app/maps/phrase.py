"""Evidence for a text: what tokens add to the logit of a label that comes with a request."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.bundle import Manifest
from app.maps.attention_map import AttentionMap, Comparison
from app.maps.choice import Choice, evidence_map, receipt_of
from app.maps.record import Maps


@dataclass(frozen=True, kw_only=True)
class Phrase:
    """The logit of a text, scale * cosine + bias, in parts. The norm of the image's embedding is held at its value."""

    text: str
    place: int  # among the labels of the request
    tokens: npt.NDArray[np.float32]  # (layers, tokens)
    rest: npt.NDArray[np.float32]  # (2,): of the MLPs, and of what is constant
    logit: float

    @classmethod
    def of(
        cls, text: str, place: int, maps: Maps, row: int, vector: npt.NDArray[np.float32], manifest: Manifest
    ) -> "Phrase":
        """`maps` have in this `row` the evidence for the text's `vector` (features,)."""
        assert manifest.text is not None
        exact = maps.embedding.astype(np.float64)
        factor = manifest.text.scale / (float(np.linalg.norm(exact)) or 1.0)
        return cls(
            text=text,
            place=place,
            tokens=maps.evidence[row] * np.float32(factor),
            rest=maps.evidence_rest[row] * np.float32(factor) + np.array([0, manifest.text.bias], np.float32),
            logit=factor * float(exact @ vector) + manifest.text.bias,
        )


def of_phrases(label: Phrase, other: Phrase | None, maps: Maps, manifest: Manifest, choice: Choice) -> AttentionMap:
    """The map of a text. The `other` is subtracted if the choice has `against`, and else compared with."""
    recipe = f"direct contribution of each token to the logit of {label.text}"
    tokens, rest, logit = label.tokens, label.rest, label.logit
    siblings = tokens if other is None else np.stack([tokens, other.tokens])
    comparison = None
    if other is not None:
        apart, rest_apart, logits_apart = tokens - other.tokens, rest - other.rest, logit - other.logit
        if choice.against is not None:
            tokens = siblings = apart
            rest, logit = rest_apart, logits_apart
            recipe += f" minus that to the logit of {other.text}"
        else:
            prefix = len(manifest.tokens.prefix)
            comparison = Comparison(
                against=other.text, receipt=receipt_of(apart, rest_apart, logits_apart, "logit", prefix=prefix)
            )
    return evidence_map(
        tokens,
        rest,
        logit,
        manifest,
        choice,
        recipe=recipe,
        siblings=siblings,
        rollout=maps.rollout,
        comparison=comparison,
        label=label.text,
        index=label.place,
        against=choice.against,
    )
