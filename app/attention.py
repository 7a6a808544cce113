"""Chooses one map from what a forward pass left: a method, a layer, a head. Draws nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from app.bundle import Manifest, Prefix
from app.errors import InvalidParameter
from app.store import Record

Method = Literal["class_token", "rollout"]
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


@dataclass(frozen=True, kw_only=True)
class AttentionMap:
    """Raw numbers of one map, and how they came about."""

    method: Method
    layer: int | Literal["mean", "all"]
    head: int | Literal["mean", "max", "min"]
    recipe: str
    values: npt.NDArray[np.float32]  # (rows, columns) of the patch grid, unscaled
    signed: bool  # whether numbers below zero have a meaning
    class_token_mass: float
    distillation_mass: float
    register_mass: float


def choose(record: Record, manifest: Manifest, *, method: Method, layer: str | None, head: str) -> AttentionMap:
    """The map asked for. Raises InvalidParameter for a layer or head that the model does not have.

    class_token: the row of the class token, or what stands for it in a model that pools otherwise; heads reduced.
    rollout: Abnar & Zuidema 2020 (arXiv 2005.00928), the row of the product over layers of (mean over heads + I) / 2.
    """
    whose = ROWS[manifest.pool]
    chosen_layer = _layer(layer, manifest.layers)
    chosen_head = _head(head, manifest.heads)
    if method == "rollout":
        recipe = f"{whose} in the product over all layers of (mean over heads + identity) / 2"
        return _split(record.maps.rollout, manifest, method, "all", "mean", recipe)
    rows = record.maps.attention.astype(np.float32)  # (layers, heads, tokens)
    of_layer = rows.mean(axis=0) if chosen_layer == "mean" else rows[chosen_layer]
    row = of_layer[chosen_head] if isinstance(chosen_head, int) else REDUCE[chosen_head](of_layer, axis=0)
    where = "mean over layers" if chosen_layer == "mean" else f"layer {chosen_layer}"
    which = f"head {chosen_head}" if isinstance(chosen_head, int) else f"{chosen_head} over heads"
    return _split(row, manifest, method, chosen_layer, chosen_head, f"{whose} after softmax, {where}, {which}")


def every_head(record: Record, manifest: Manifest) -> npt.NDArray[np.float32]:
    """The class token's row of all heads of all layers, patches alone: (layers, heads, rows, columns)."""
    patches = record.maps.attention[..., len(manifest.tokens.prefix) :].astype(np.float32)
    return patches.reshape(*patches.shape[:2], *manifest.tokens.grid)


def siblings(record: Record, manifest: Manifest, chosen: AttentionMap) -> npt.NDArray[np.float32]:
    """The maps that `chosen` is compared with on a shared scale, (..., rows, columns): all of its method."""
    return every_head(record, manifest) if chosen.method == "class_token" else chosen.values


def _split(
    row: npt.NDArray[np.float32],
    manifest: Manifest,
    method: Method,
    layer: int | Literal["mean", "all"],
    head: int | Literal["mean", "max", "min"],
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
