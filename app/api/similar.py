"""The direction from an image towards another, which evidence with `like` follows."""

from typing import TypeVar

import numpy as np
import numpy.typing as npt
from fastapi import Request

from app.api.services import Services
from app.bundle import Manifest
from app.errors import InvalidParameter
from app.maps.choice import Choice
from app.maps.direction import MEAN, NOTHING, Vectors, check_directions, towards
from app.maps.record import KeptImage

C = TypeVar("C", bound=Choice)


def settled(choice: C, manifest: Manifest) -> C:
    """The choice with what is subtracted by default. Raises InvalidParameter for a mean that the bundle lacks."""
    if choice.like is None:
        return choice
    check_directions(manifest)
    if choice.against == MEAN and not manifest.mean:
        raise InvalidParameter("The bundle knows no images, so it has no mean of them: name another against.")
    default = MEAN if manifest.mean else NOTHING
    return choice.model_copy(update={"against": choice.against or default})


async def others(choice: Choice, services: Services, request: Request) -> list[tuple[str, KeptImage]]:
    """`like` and, if it is an id, `against`, with the images kept. Raises UnknownAttention, StoreUnavailable."""
    if choice.like is None:
        return []
    ids = [choice.like, choice.against if choice.against not in (MEAN, NOTHING) else None]
    return [(id, await services.kept(id, request)) for id in ids if id is not None]


async def direction_to(
    choice: Choice, images: list[tuple[str, KeptImage]], services: Services, request: Request
) -> Vectors:
    """The direction (1, features), from the maps of the `others`, which are kept: the next drawing runs nothing.

    Raises what `Services.maps` raises.
    """
    embeddings = [(await services.maps(id, image, request)).embedding for id, image in images]
    return direction_of(choice, embeddings, services.bundle.manifest)


def direction_of(choice: Choice, embeddings: list[npt.NDArray[np.floating]], manifest: Manifest) -> Vectors:
    """The same from the embeddings (features,) of the others."""
    if choice.against == MEAN:
        embeddings = [*embeddings, np.array(manifest.mean)]
    return towards(embeddings[0], embeddings[1] if len(embeddings) > 1 else None)
