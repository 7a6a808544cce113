"""Evidence: what each token adds to the logit of a label, or to another number that the embedding leads to."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from app.bundle import Manifest
from app.maps.attention_map import AttentionMap, Chosen, Comparison, Receipt, one_of
from app.maps.choice import Choice, layer_named
from app.maps.labels import find_class
from app.maps.record import Maps


@dataclass(frozen=True, kw_only=True)
class LabelEvidence:
    """What tokens add to the logit of a label."""

    label: str
    index: int  # among the labels of the bundle, or of the request
    tokens: npt.NDArray[np.float32]  # (layers, tokens)
    rest: npt.NDArray[np.float32]  # (2,): of the MLPs, and of what is constant
    logit: float


def evidence(maps: Maps, manifest: Manifest, choice: Choice) -> AttentionMap:
    def of(k: int) -> LabelEvidence:
        index = int(maps.classes[k])
        return LabelEvidence(
            label=manifest.labels[index],
            index=index,
            tokens=maps.evidence[k],
            rest=maps.evidence_rest[k],
            logit=float(maps.logits[index]),
        )

    k = find_class(maps, manifest.labels, choice.label)
    other = None
    if choice.against is not None:
        other = of(find_class(maps, manifest.labels, choice.against))
    elif manifest.score == "softmax" and len(maps.classes) > 1:
        other = max((of(i) for i in range(len(maps.classes)) if i != k), key=lambda label: label.logit)
    # All labels are siblings, so that they can be compared too.
    return map_of_label(of(k), other, manifest, choice, siblings=maps.evidence, rollout=maps.rollout)


def map_of_label(
    label: LabelEvidence,
    other: LabelEvidence | None,
    manifest: Manifest,
    choice: Choice,
    *,
    siblings: npt.NDArray[np.float32],
    rollout: npt.NDArray[np.float32],
) -> AttentionMap:
    """The `other` label is subtracted if the choice has `against`, and else compared with."""
    recipe = f"direct contribution of each token to the logit of {label.label}"
    tokens, rest, logit = label.tokens, label.rest, label.logit
    comparison = against = None
    if other is not None:
        apart, rest_apart, logits_apart = tokens - other.tokens, rest - other.rest, logit - other.logit
        if choice.against is not None:
            tokens, rest, logit = apart, rest_apart, logits_apart
            siblings, against = tokens, other.label
            recipe += f" minus that to the logit of {against}"
        else:
            receipt = _receipt(apart, rest_apart, logits_apart, "logit", prefix=len(manifest.tokens.prefix))
            comparison = Comparison(against=other.label, receipt=receipt)
    return evidence_map(
        tokens,
        rest,
        logit,
        manifest,
        choice,
        recipe=recipe,
        siblings=siblings,
        rollout=rollout,
        comparison=comparison,
        label=label.label,
        index=label.index,
        against=against,
    )


def evidence_map(
    tokens: npt.NDArray[np.float32],
    rest: npt.NDArray[np.float32],
    whole: float,
    manifest: Manifest,
    choice: Choice,
    *,
    recipe: str,
    siblings: npt.NDArray[np.float32],
    rollout: npt.NDArray[np.float32],
    kind: str = "logit",
    comparison: Comparison | None = None,
    **named: Any,
) -> AttentionMap:
    """The map of evidence (layers, tokens), of which `rest` (2,) is what the MLPs and constants add to the `whole`: a
    logit, or another `kind` of number in a receipt. `named` says what it is of.
    """
    receipt = None
    if choice.method == "positive_evidence":
        tokens, siblings = (np.maximum(part, 0) * rollout for part in (tokens, siblings))
        recipe += ", where it is positive, times rollout"
    else:
        receipt = _receipt(tokens, rest, whole, kind, prefix=len(manifest.tokens.prefix))
    layer: int | Literal["mean", "sum"] = "sum"
    if choice.layer not in (None, "sum"):
        layer = layer_named(choice.layer, manifest.layers)
    row, of_layer = one_of(tokens, layer, axis="layer")
    recipe += f", through the heads' values, {of_layer}"
    siblings = np.concatenate([siblings, siblings.sum(axis=-2, keepdims=True)], axis=-2)
    chosen = Chosen(method=choice.method, layer=layer, head="sum", recipe=recipe, **named)
    if receipt is None:
        comparison = None
    return AttentionMap.of_tokens(row, siblings, manifest, chosen, receipt=receipt, comparison=comparison)


def _receipt(
    tokens: npt.NDArray[np.float32], rest: npt.NDArray[np.float32], whole: float, kind: str, *, prefix: int
) -> Receipt:
    """`tokens` is (layers, tokens), of which `prefix` stand before the patches, `rest` (2,) the MLPs and constants."""
    of_prefix, patches = (float(part.sum(dtype=np.float64)) for part in np.split(tokens, [prefix], axis=1))
    mlps, constants = (float(value) for value in rest)
    rounding = whole - patches - of_prefix - mlps - constants
    return Receipt(
        patches=patches, prefix=of_prefix, mlps=mlps, constants=constants, rounding=rounding, **{kind: whole}
    )
