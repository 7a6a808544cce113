"""Chooses one map from what a forward pass left: a method, a layer, a head. Draws nothing."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Self, get_args

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel

from app.bundle import Manifest, Prefix
from app.errors import InvalidParameter
from app.maps.record import Maps, Record

Method = Literal["class_token", "rollout", "evidence"]
Layer = int | Literal["mean", "all", "sum"]
Head = int | Literal["mean", "max", "min", "sum"]
ROWS = {  # by what the head reads
    "cls": "class token's row",
    "cls_mean": "class token's row",
    "mean": "patches' mean row",
    "mean_all": "mean row of all tokens",
    "map": "patches' rows, weighted by the attention pool,",
}
REDUCE: dict[Literal["mean", "max", "min"], Callable[..., npt.NDArray[np.float32]]] = {
    "mean": np.mean,
    "max": np.max,
    "min": np.min,
}


class Receipt(BaseModel):
    """A logit, or the difference of two, as a sum of `patches` to `rounding`, over all layers."""

    patches: float
    prefix: float  # the tokens before the patches
    mlps: float
    constants: float
    rounding: float  # what is left: of the arithmetic, and in int8 of what attention's projection reads
    logit: float


@dataclass(frozen=True, kw_only=True)
class AttentionMap:
    """Raw numbers of one map, and how they came about."""

    method: Method
    layer: Layer
    head: Head
    recipe: str
    values: npt.NDArray[np.float32]  # (rows, columns) of the patch grid, unscaled
    siblings: npt.NDArray[np.float32]  # (..., patches): the maps that a shared scale compares it with
    signed: bool  # evidence speaks for or against; attention is a share
    class_token_mass: float
    distillation_mass: float
    register_mass: float
    label: str | None = None  # whose evidence
    against: str | None = None  # less that of this one
    receipt: Receipt | None = None


def choose(
    record: Record,
    manifest: Manifest,
    *,
    method: Method,
    layer: str | None,
    head: str,
    label: str | None = None,
    against: str | None = None,
) -> AttentionMap:
    """The map asked for. Raises InvalidParameter for a layer, head or label that is not there.

    class_token: the row of the class token, or what stands for it in a model that pools otherwise; heads reduced.
    rollout: Abnar & Zuidema 2020 (arXiv 2005.00928), the row of the product over layers of (mean over heads + I) / 2.
    evidence: what each token adds to the logit of a label directly, over all heads; see export/evidence.py.
    """
    if method == "evidence":
        return _evidence(record.maps, manifest, layer=layer, label=label, against=against)
    if label is not None or against is not None:
        raise InvalidParameter("label and against belong to method=evidence: attention is the same for every label.")
    whose = ROWS[manifest.pool]
    chosen_layer = _layer(layer, manifest.layers)
    chosen_head = _head(head, manifest.heads)
    if method == "rollout":
        recipe = f"{whose} in the product over all layers of (mean over heads + identity) / 2"
        rollout = record.maps.rollout
        return _split(rollout, rollout, manifest, method, layer="all", head="mean", recipe=recipe)
    rows = record.maps.attention.astype(np.float32)  # (layers, heads, tokens)
    of_layer = rows.mean(axis=0) if chosen_layer == "mean" else rows[chosen_layer]
    row = of_layer[chosen_head] if isinstance(chosen_head, int) else REDUCE[chosen_head](of_layer, axis=0)
    where = "mean over layers" if chosen_layer == "mean" else f"layer {chosen_layer}"
    which = f"head {chosen_head}" if isinstance(chosen_head, int) else f"{chosen_head} over heads"
    recipe = f"{whose} after softmax, {where}, {which}"
    return _split(row, rows, manifest, method, layer=chosen_layer, head=chosen_head, recipe=recipe)


def find_class(maps: Maps, labels: tuple[str, ...], text: str) -> int:
    """Place among the kept classes of a label, given by its index or its name.

    Raises InvalidParameter when it is none of them.
    """
    kept = [int(index) for index in maps.classes]
    named = {labels[index]: k for k, index in reversed(list(enumerate(kept)))}  # of equal names the likeliest
    index = _integer(text)
    if text in named:
        return named[text]
    if index in kept:
        return kept.index(index)
    known = ", ".join(f"{labels[index]} ({index})" for index in kept)
    raise InvalidParameter(f"Evidence is kept for the most likely labels of this picture: {known}.")


def _evidence(
    maps: Maps, manifest: Manifest, *, layer: str | None, label: str | None, against: str | None
) -> AttentionMap:
    k = 0 if label is None else find_class(maps, manifest.labels, label)
    of_label = _Parts.of(maps, k)
    recipe = f"direct contribution of each token to the logit of {manifest.labels[maps.classes[k]]}"
    other = None
    if against is not None:
        other = find_class(maps, manifest.labels, against)
        of_label = of_label.less(_Parts.of(maps, other))
        recipe += f" less that to the logit of {manifest.labels[maps.classes[other]]}"
    chosen = "sum" if layer in (None, "sum") else _layer(layer, manifest.layers)
    row, where = of_label.tokens.sum(axis=0), "sum over layers"
    if chosen == "mean":
        row, where = of_label.tokens.mean(axis=0), "mean over layers"
    elif isinstance(chosen, int):
        row, where = of_label.tokens[chosen], f"layer {chosen}"
    recipe += f", through the heads' values, {where}"
    layers = of_label.tokens if other is not None else maps.evidence  # labels can be compared too
    siblings = np.concatenate([layers, layers.sum(axis=-2, keepdims=True)], axis=-2)
    chosen_map = _split(row, siblings, manifest, "evidence", layer=chosen, head="sum", recipe=recipe)
    return replace(
        chosen_map,
        signed=True,
        label=manifest.labels[maps.classes[k]],
        against=None if other is None else manifest.labels[maps.classes[other]],
        receipt=of_label.receipt(len(manifest.tokens.prefix)),
    )


class _Parts(NamedTuple):
    """Of a logit, or of a difference of two."""

    tokens: npt.NDArray[np.float32]  # (layers, tokens)
    rest: npt.NDArray[np.float32]  # (2,)
    logit: float

    @classmethod
    def of(cls, maps: Maps, k: int) -> Self:
        return cls(maps.evidence[k], maps.evidence_rest[k], float(maps.logits[k]))

    def less(self, other: Self) -> Self:
        return type(self)(self.tokens - other.tokens, self.rest - other.rest, self.logit - other.logit)

    def receipt(self, prefix: int) -> Receipt:
        patches = float(self.tokens[:, prefix:].sum(dtype=np.float64))
        before = float(self.tokens[:, :prefix].sum(dtype=np.float64))
        mlps, constants = (float(value) for value in self.rest)
        return Receipt(
            patches=patches,
            prefix=before,
            mlps=mlps,
            constants=constants,
            rounding=self.logit - patches - before - mlps - constants,
            logit=self.logit,
        )


def every_head(record: Record, manifest: Manifest) -> npt.NDArray[np.float32]:
    """The class token's row of all heads of all layers, patches alone: (layers, heads, rows, columns)."""
    patches = record.maps.attention[..., len(manifest.tokens.prefix) :].astype(np.float32)
    return patches.reshape(*patches.shape[:2], *manifest.tokens.grid)


def _split(
    row: npt.NDArray[np.float32],
    siblings: npt.NDArray[np.float32],
    manifest: Manifest,
    method: Method,
    *,
    layer: Layer,
    head: Head,
    recipe: str,
) -> AttentionMap:
    """Separate the patches from the tokens before them, which have no place in the picture."""
    prefix = manifest.tokens.prefix
    masses = dict.fromkeys(get_args(Prefix), 0.0)
    for name, value in zip(prefix, row[: len(prefix)], strict=True):
        masses[name] += float(value)
    return AttentionMap(
        method=method,
        layer=layer,
        head=head,
        recipe=recipe,
        values=row[len(prefix) :].reshape(manifest.tokens.grid),
        siblings=siblings[..., len(prefix) :],
        signed=False,
        class_token_mass=masses["class"],
        distillation_mass=masses["distillation"],
        register_mass=masses["register"],
    )


def _layer(text: str | None, layers: int) -> int | Literal["mean"]:
    if text == "mean":
        return "mean"
    index = layers - 1 if text is None else _integer(text)
    if index is None or not -layers <= index < layers:
        raise InvalidParameter(f"layer has to be 0 to {layers - 1}, negative from the end, or mean.")
    return index % layers


def _head(text: str, heads: int) -> int | Literal["mean", "max", "min"]:
    for name in REDUCE:
        if text == name:
            return name
    index = _integer(text)
    if index is None or not 0 <= index < heads:
        raise InvalidParameter(f"head has to be 0 to {heads - 1}, mean, max or min.")
    return index


def _integer(text: str) -> int | None:
    try:
        return int(text) if len(text) < 10 else None
    except ValueError:
        return None
