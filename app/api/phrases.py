"""Labels and other texts that come with a request, for bundles with a text tower."""

import json
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Annotated

import numpy as np
import numpy.typing as npt
from annotated_types import Len
from fastapi import Request
from pydantic import BaseModel, BeforeValidator, Field, StringConstraints, WithJsonSchema
from pydantic_core import PydanticCustomError

from app.api.parameters import refused
from app.api.services import Services
from app.bundle import Manifest
from app.errors import NoClasses
from app.inference.engine import Asked
from app.inference.phrases import PROMPT, Among, Vectors, prompted
from app.maps.attention_map import AttentionMap
from app.maps.choice import Choice
from app.maps.direction import asked_for
from app.maps.evidence import LabelEvidence, map_of_label
from app.maps.phrase import evidence_of
from app.maps.record import Maps
from app.telemetry.request_state import RequestState

MOST_TEXTS, MOST_CHARACTERS = 256, 500  # app/images/json_body.py takes longer strings for images
OF_TEXTS = {"type": "string"}

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MOST_CHARACTERS)]


def _listed(value: object, *, apart: str = ",") -> object:
    """A list in JSON, or texts that stand `apart`. FastAPI gives what is in a query as a list of one."""
    text = value[0] if isinstance(value, list) and len(value) == 1 else value
    if not isinstance(text, str):
        return value
    if not text.lstrip().startswith("["):
        return text.split(apart) if apart else [text]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise PydanticCustomError("texts", "Input should be a text, or a list of texts in JSON") from None


def _has_place(prompt: str) -> str:
    if "{}" not in prompt:
        raise PydanticCustomError("prompt", "Input should have {} in place of the label")
    return prompt


Texts = Annotated[tuple[Text, ...], Len(1, MOST_TEXTS), WithJsonSchema(OF_TEXTS)]
Labels = Annotated[Texts, BeforeValidator(_listed)]
OneOrMore = Annotated[Texts, BeforeValidator(partial(_listed, apart=""))]
Prompt = Annotated[Text, BeforeValidator(_has_place)]


class PhraseParameters(BaseModel):
    """Labels in place of those of the bundle."""

    labels: Annotated[
        Labels | None,
        Field(
            description=f"Labels to choose among, with commas between or as a list in JSON; at most {MOST_TEXTS}. For "
            "bundles with a text tower"
        ),
    ] = None
    prompt: Annotated[
        Prompt | None, Field(description=f'The sentence in which they are read; "{PROMPT}" by default')
    ] = None


async def embedded(texts: Sequence[str], services: Services, request: Request) -> Vectors:
    """The vectors (texts, features) of length 1. A request whose texts are new waits for the text tower, and is
    admitted as an image is. Raises what admission and `Phrases` raise.
    """
    known = services.phrases.known(texts)
    if known is not None:
        return known
    state = RequestState.of(request.scope)
    with services.admission.admit(1, deadline=state.deadline), state.stages.time("text"):
        return await services.phrases.embed(texts, deadline=state.deadline)


async def among(labels: Sequence[str], prompt: str | None, services: Services, request: Request) -> Among:
    """What images are compared with. Raises as `embedded`."""
    vectors = await embedded(prompted(labels, prompt or PROMPT), services, request)
    return Among.of(tuple(labels), vectors, services.bundle.manifest)


def check_classes(manifest: Manifest, labels: Sequence[str] | None) -> None:
    """Raises NoClasses where neither the bundle nor the request has labels."""
    if not (manifest.labels or labels):
        raise NoClasses


def is_of_phrase(choice: Choice, phrases: PhraseParameters, manifest: Manifest) -> bool:
    """Whether evidence is for texts, and not for labels of the bundle, which go first.

    Raises InvalidParameter for labels of a map that has none.
    """
    evidence = choice.method in ("evidence", "positive_evidence") and choice.like is None
    if not evidence and (phrases.labels or phrases.prompt):
        name = "labels" if phrases.labels else "prompt"
        raise refused(name, f"{name} needs method=evidence or positive_evidence, and no like.")
    if phrases.labels or phrases.prompt:
        return True
    own = {*manifest.labels, *map(str, range(len(manifest.labels)))}
    return evidence and manifest.text is not None and choice.label is not None and choice.label not in own


async def evidence_for(
    choice: Choice,
    phrases: PhraseParameters,
    services: Services,
    request: Request,
    embedding: npt.NDArray[np.floating],
    explain: Callable[[Asked], Awaitable[Maps]],
) -> tuple[AttentionMap, Among]:
    """The map of an image for a text: `label`, or the most likely one of `labels`; and what it was compared with.

    The image has this `embedding` (features,), and `explain` runs the model on it. Raises InvalidParameter, and what
    `explain` and `embedded` raise.
    """
    manifest = services.bundle.manifest
    named = [text for text in (choice.label, choice.against) if text is not None]
    texts = tuple(dict.fromkeys([*(phrases.labels or ()), *named]))
    if choice.label is None and not phrases.labels:
        raise refused("prompt", "prompt needs labels or label.")
    compare = await among(texts, phrases.prompt, services, request)
    logits = compare.logits(embedding)
    likely = [int(place) for place in np.argsort(-logits, kind="stable") if texts[place] in (phrases.labels or ())]
    top = likely[0] if choice.label is None else texts.index(choice.label)
    others = [place for place in likely if place != top]
    other: int | None = others[0] if others and manifest.score == "softmax" else None
    if choice.against is not None:
        other = texts.index(choice.against)
    shown = [place for place in (top, other) if place is not None]
    parts: list[LabelEvidence] = []
    for asked in asked_for(compare.vectors[shown], manifest):
        maps = await explain(asked)
        for row, vector in enumerate(asked.directions):
            place = shown[len(parts)]
            parts.append(evidence_of(texts[place], place, maps, row, vector, manifest))
    label, against = parts[0], parts[1] if len(parts) > 1 else None
    siblings = np.stack([part.tokens for part in parts])
    return map_of_label(label, against, manifest, choice, siblings=siblings, rollout=maps.rollout), compare
