"""Evidence for a direction of the space of embeddings: for another image, or for any vector."""

from typing import Any

import numpy as np
import numpy.typing as npt

from app.bundle import Manifest
from app.errors import InvalidParameter
from app.inference.engine import DIRECTION, Asked
from app.inference.unit import unit
from app.maps.attention_map import AttentionMap
from app.maps.choice import Choice
from app.maps.evidence import evidence_map
from app.maps.record import Maps

MEAN, NOTHING = "mean", "nothing"  # what may stand in place of an image's id that is subtracted

Vectors = npt.NDArray[np.float32]  # (n, features)


def check_directions(manifest: Manifest) -> None:
    """Raises InvalidParameter for a bundle of before."""
    if not manifest.directions:
        raise InvalidParameter(
            "This bundle has evidence for labels alone. Export the model again to have it for images."
        )


def asked_for(vectors: Vectors, manifest: Manifest) -> list[Asked]:
    """The runs that explain all `vectors` (n, features)."""
    places = manifest.directions
    parts = [vectors[at : at + places] for at in range(0, len(vectors), places)]
    if not manifest.labels:
        return [Asked((), part) for part in parts]
    return [Asked((DIRECTION,) * len(part), part) for part in parts]


def towards(like: npt.NDArray[np.floating], against: npt.NDArray[np.floating] | None) -> Vectors:
    """The direction (1, features) of an embedding, less that of another."""
    direction = unit(like.astype(np.float64)) - (0 if against is None else unit(against.astype(np.float64)))
    return direction.astype(np.float32)[np.newaxis]


def said(choice: Choice) -> str:
    """What the cosine is with, in words."""
    return (choice.like or "the vector") + (
        "" if choice.against in (None, NOTHING) else f" minus that with {choice.against}"
    )


def similarity(maps: Maps, manifest: Manifest, choice: Choice, direction: Vectors) -> AttentionMap:
    """What the tokens add to the cosine between this image's embedding and another, from maps for the `direction`
    towards that. The norm of this embedding is held at its value.
    """
    recipe = f"direct contribution of each token to the cosine similarity with {said(choice)}"
    length = float(np.linalg.norm(maps.embedding.astype(np.float64))) or 1.0
    return _of_vector(maps, manifest, choice, direction[0], 0, recipe, kind="cosine", length=length)


def products(maps: Maps, manifest: Manifest, choice: Choice, vectors: Vectors) -> list[AttentionMap]:
    """What the tokens add to the inner product of the embedding with each of the vectors."""
    recipe = "direct contribution of each token to the inner product with the vector"
    return [
        _of_vector(maps, manifest, choice, vector, place, recipe, kind="product")
        for place, vector in enumerate(vectors)
    ]


def _of_vector(
    maps: Maps,
    manifest: Manifest,
    choice: Choice,
    vector: npt.NDArray[np.float32],
    place: int,
    recipe: str,
    *,
    kind: str,
    length: float = 1.0,
) -> AttentionMap:
    tokens, rest = maps.evidence[place] / np.float32(length), maps.evidence_rest[place] / np.float32(length)
    whole = float(maps.embedding.astype(np.float64) @ vector) / length
    named: dict[str, Any] = {"like": choice.like, "against": choice.against} if kind == "cosine" else {}
    return evidence_map(
        tokens, rest, whole, manifest, choice, recipe=recipe, siblings=tokens, rollout=maps.rollout, kind=kind, **named
    )
