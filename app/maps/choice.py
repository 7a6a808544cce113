"""Chooses one map from what a forward pass left: a method, a layer, a head, a label. Draws nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self, get_args

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field

from app.bundle import Manifest, Prefix
from app.errors import InvalidParameter, NoClasses
from app.maps.attention_map import AttentionMap, Chosen, Comparison, Method, Receipt
from app.maps.labels import find_class, index_of
from app.maps.measured import LEAST_PASSES, MOST_PASSES, PASSES
from app.maps.record import Maps

ROWS = {  # by what the head reads
    "cls": "class token's row",
    "cls_mean": "class token's row",
    "mean": "patches' mean row",
    "mean_all": "mean row of all tokens",
    "map": "patches' rows, weighted by the attention pool,",
    "map_all": "rows of all tokens, weighted by the attention pool,",
}


class Choice(BaseModel):
    """Which map of an image a client asks for."""

    model_config = ConfigDict(frozen=True)

    method: Annotated[
        Method,
        Field(
            description="`class_token`: attention in one layer; `rollout`: attention through all layers; "
            "`evidence`: what each patch adds to the logit of a label; "
            "`positive_evidence`: the same without what it takes away in any layer, times rollout; "
            "`measured`: by how much each patch raises the log-odds of a label, or the cosine with `like`, from "
            "`passes` runs of the model. All but the last cost the same"
        ),
    ] = "class_token"
    layer: Annotated[
        str | None,
        Field(
            description="Layer index from 0 (negative counts from the end; `layer` of tokens counts from 1) or `mean`; "
            "for evidence also `sum`. Default: the last layer; for evidence, `sum`. No effect on rollout and measured"
        ),
    ] = None
    head: Annotated[str, Field(description="Head index, `mean`, `max` or `min`. Only class_token has single heads")] = (
        "mean"
    )
    label: Annotated[
        str | None,
        Field(
            description="For evidence and measured: any label (index or name). Default: the top label. For evidence "
            "also a phrase, if the bundle has a text tower"
        ),
    ] = None
    against: Annotated[
        str | None,
        Field(
            description="For evidence and measured: a second label, any other, to subtract. With `like`: the id of an "
            "image, `nothing`, or `mean` of the images that the bundle knows, which is the default where it knows some"
        ),
    ] = None
    like: Annotated[
        str | None,
        Field(
            description="For evidence and measured: the id of another image, in place of a label: what makes this one "
            "like it"
        ),
    ] = None
    passes: Annotated[
        int,
        Field(
            ge=LEAST_PASSES,
            le=MOST_PASSES,
            multiple_of=4,  # a mask and its complement under each fill
            description="For measured: runs of the model, of which the first ones are those of a smaller number",
        ),
    ] = PASSES

    @property
    def of_label(self) -> bool:
        """Whether the map is of one label. Attention is the same for every label."""
        return self.method in ("evidence", "positive_evidence", "measured")

    def without(self, *followed: Literal["label", "against"]) -> Self:
        """The choice of a map, where these name the logit that is followed: attention has no label."""
        return self if self.of_label else self.model_copy(update=dict.fromkeys(followed))


def choose(maps: Maps, manifest: Manifest, choice: Choice) -> AttentionMap:
    """The map asked for, of any method but measured. Raises InvalidParameter for a layer, head or label that does not
    exist.

    class_token: the row of the class token, or the row that replaces it in a model that pools otherwise; heads reduced.
    rollout: Abnar & Zuidema 2020 (arXiv 2005.00928), the row of the product over layers of (mean over heads + I) / 2.
    evidence: what each token adds to the logit of a label directly, over all heads; see export/evidence.py.
    positive_evidence: the same, with 0 in place of the negative numbers of every layer, before layers are summed, times
    rollout: what a head reads at a patch came from that patch only as far as rollout says.
    """
    check_choice(choice, manifest)
    refuse_like(choice)
    if choice.of_label:
        return _evidence(maps, manifest, choice)
    head = _head(choice.head, manifest.heads)
    whose = ROWS[manifest.pool]
    layer = _layer(choice.layer, manifest.layers)
    if choice.method == "rollout":
        recipe = f"{whose} in the product over all layers of (mean over heads + identity) / 2"
        chosen = Chosen(method="rollout", layer="all", head="mean", recipe=recipe)
        return _map(maps.rollout, maps.rollout, manifest, chosen)
    # Heads of two layers have nothing in common but their number, so those of each layer are reduced first.
    layers, of_head = _one_of(maps.attention.swapaxes(0, 1), head, axis="head")
    row, of_layer = _one_of(layers, layer, axis="layer")
    recipe = f"{whose} after softmax, {of_head}, {of_layer}"
    return _map(row, maps.attention, manifest, Chosen(method="class_token", layer=layer, head=head, recipe=recipe))


def refuse_like(choice: Choice) -> None:
    """Raises InvalidParameter where another image stands in place of a label."""
    if choice.like is not None:
        raise InvalidParameter("like is for GET /attention/{id} alone.")


def check_choice(choice: Choice, manifest: Manifest, *, of_phrase: bool = False) -> None:
    """Raises InvalidParameter and NoClasses for what no image of this model has. A label `of_phrase` is a text, for
    which the bundle needs none of its own.
    """
    _head(choice.head, manifest.heads)
    if choice.like is not None:
        if not choice.of_label or choice.label is not None:
            raise InvalidParameter(
                "like needs method=evidence, positive_evidence or measured, and takes the place of label."
            )
    elif choice.of_label:
        if not (manifest.labels or of_phrase):
            raise NoClasses
    elif choice.label is not None or choice.against is not None:
        raise InvalidParameter(
            "label and against need method=evidence, positive_evidence or measured: attention is the same for every "
            "label."
        )
    if not (choice.of_label and choice.layer == "sum"):
        _layer(choice.layer, manifest.layers)


def classes_for(choice: Choice, labels: tuple[str, ...], likely: Sequence[int]) -> tuple[int, ...]:
    """The classes to explain for a choice: the most `likely` ones, unless it names others. Those then stand behind as
    many of these as there is room for, so that a name leads to the same class here and in `find_class`.

    Raises InvalidParameter for a label that the model does not have.
    """
    if not labels:
        return ()
    top = likely[0] if choice.label is None else index_of(choice.label, labels, likely)
    named = [top] if choice.against is None else [top, index_of(choice.against, labels, likely)]
    others = sorted(set(named) - set(likely))
    if not others:
        return tuple(likely)
    return (*sorted(likely, key=lambda index: index not in named)[: len(likely) - len(others)], *others)


@dataclass(frozen=True, kw_only=True)
class LabelEvidence:
    """What tokens add to the logit of a label."""

    label: str
    index: int  # among the labels of the bundle, or of the request
    tokens: npt.NDArray[np.float32]  # (layers, tokens)
    rest: npt.NDArray[np.float32]  # (2,): of the MLPs, and of what is constant
    logit: float


def _evidence(maps: Maps, manifest: Manifest, choice: Choice) -> AttentionMap:
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
        layer = _layer(choice.layer, manifest.layers)
    row, of_layer = _one_of(tokens, layer, axis="layer")
    recipe += f", through the heads' values, {of_layer}"
    siblings = np.concatenate([siblings, siblings.sum(axis=-2, keepdims=True)], axis=-2)
    chosen = Chosen(method=choice.method, layer=layer, head="sum", recipe=recipe, **named)
    if receipt is None:
        comparison = None
    return _map(row, siblings, manifest, chosen, receipt=receipt, comparison=comparison)


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


def _map(
    row: npt.NDArray[np.float32],
    siblings: npt.NDArray[np.float32],
    manifest: Manifest,
    chosen: Chosen,
    *,
    receipt: Receipt | None = None,
    comparison: Comparison | None = None,
) -> AttentionMap:
    """Separate the patches from the tokens before them, which have no place in the image."""
    prefix = manifest.tokens.prefix
    masses: dict[Prefix, float] = dict.fromkeys(get_args(Prefix), 0.0)
    for name, value in zip(prefix, row[: len(prefix)], strict=True):
        masses[name] += float(value)
    return AttentionMap(
        chosen=chosen,
        values=row[len(prefix) :].reshape(manifest.tokens.grid),
        siblings=siblings[..., len(prefix) :],
        masses=masses,
        receipt=receipt,
        comparison=comparison,
    )


def _one_of(
    numbers: npt.NDArray[np.float32], which: int | Literal["mean", "max", "min", "sum"], *, axis: str
) -> tuple[npt.NDArray[np.float32], str]:
    """One of the first axis, or what the method of arrays with this name makes of all; and which, in words."""
    if isinstance(which, int):
        return numbers[which], f"{axis} {which}"
    return getattr(numbers, which)(axis=0), f"{which} over {axis}s"


def _layer(text: str | None, layers: int) -> int | Literal["mean"]:
    named: dict[str | None, int | Literal["mean"]] = {str(i): i % layers for i in range(-layers, layers)}
    named |= {None: layers - 1, "mean": "mean"}
    if text not in named:
        raise InvalidParameter(f"layer must be 0 to {layers - 1}, a negative index from the end, or mean.")
    return named[text]


def _head(text: str, heads: int) -> int | Literal["mean", "max", "min"]:
    named: dict[str, int | Literal["mean", "max", "min"]] = {str(i): i for i in range(heads)}
    named |= {"mean": "mean", "max": "max", "min": "min"}
    if text not in named:
        raise InvalidParameter(f"head must be 0 to {heads - 1}, mean, max or min.")
    return named[text]
