"""/attention: a map of an image that was classified before, or of one in the request."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

import numpy as np
from fastapi import Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from app.api.description import image_request
from app.api.image_request import ImageRequest
from app.api.parameters import ChoiceQuery
from app.api.phrases import PhraseParameters, evidence_for, is_of_phrase
from app.api.render import Format, draw_unless_known, drawn, npy, preferred_format, representations
from app.api.results import MapsId, ModelName
from app.api.route import CheckedRouter
from app.api.services import services_of
from app.api.similar import direction_of, direction_to, others, settled
from app.classifier import Outcome, Processed
from app.drawing.colors import Limits, Scale, limits
from app.drawing.heatmap import Style, draw
from app.errors import InvalidParameter, ServiceError
from app.http.problems import problems
from app.images.preprocess import PreprocessedImage
from app.images.upload import Upload
from app.inference.digits import listed
from app.inference.engine import MOST_LIKELY_CLASS, NOTHING_ASKED, Asked
from app.inference.scoring import TOP_K, Prediction
from app.maps.attention import choose
from app.maps.attention_map import AttentionMap, Chosen, Comparison, Receipt
from app.maps.choice import Choice, check_choice, classes_for
from app.maps.direction import MEAN, NOTHING, asked_for, similarity
from app.maps.record import KeptImage

OF_SCALE = "Which numbers get the first and the last colour"
OF_FORMAT = "Overrides the Accept header"


class AttentionResponse(Chosen):
    """One map: how it was made, and its raw numbers."""

    id: MapsId = None  # of a kept image
    model: ModelName
    predictions: list[Prediction] | SkipJsonSchema[None] = None  # of an image in the request

    grid: tuple[int, int]  # rows, columns
    values: list[float]  # row by row, unscaled
    spread: list[float] | SkipJsonSchema[None] = None  # of a measured map: the standard error of each of `values`
    min: float
    max: float
    scale: Scale
    limits: tuple[float, float]  # the numbers of the first and the last colour of the PNG, by this scale
    beyond: int  # patches whose numbers lie beyond these
    sum: float
    class_token_mass: float
    distillation_mass: float
    register_mass: float
    image: tuple[int, int]  # width, height of the upright original
    comparison: Comparison | None  # of evidence, without `against`
    receipt: Receipt | None  # of evidence
    crop_box: tuple[float, float, float, float]  # left, top, right, bottom of what the network saw, in its pixels


class MapParameters(Choice, Style, PhraseParameters):
    """Which map, and how it looks."""

    scale: Annotated[Scale, Field(description=OF_SCALE)] = "robust"
    format: Annotated[Format | None, Field(description=OF_FORMAT)] = None


PARAMETERS = ", ".join([*Choice.model_fields, *Style.model_fields, *PhraseParameters.model_fields, "scale", "format"])

FORMATS: tuple[Format, ...] = ("png", "json", "npy")
ANSWERS = problems(404, 409, 422) | representations(*FORMATS)

router = CheckedRouter(tags=["maps"])


@router.get(
    "/attention",
    operation_id="attention_by_query",
    responses=ANSWERS,
    response_class=Response,
    summary="The same with ?id=; without an id, a short help text",
)
@router.get("/attention/{id}", summary="Draw a map of an image", responses=ANSWERS, response_class=Response)
async def attention(
    request: Request,
    choice: ChoiceQuery,
    style: Annotated[Style, Query()],
    phrases: Annotated[PhraseParameters, Query()],
    id: str | None = None,
    scale: Annotated[Scale, Query(description=OF_SCALE)] = "robust",
    format: Annotated[Format | None, Query(description=OF_FORMAT)] = None,
) -> Response:
    """The image was classified before. The map is a PNG, raw numbers in JSON, or a NumPy array."""
    services = services_of(request)
    if id is None:
        root = services.settings.root_path
        maps = f"{root}/attention/{{id}}"
        how = f"POST an image to {root}/classify; its answer has an id. Then GET {maps} for the map as a PNG, "
        parameters = f"{PARAMETERS} (png, json, npy); see {root}/docs"
        return JSONResponse({"how": f"{how}{maps}/wall for all heads.", "parameters": parameters})
    manifest = services.bundle.manifest
    kept = await services.kept(id, request)
    of_phrase = is_of_phrase(choice, phrases, manifest)
    check_choice(choice, manifest, of_phrase=of_phrase)
    choice = settled(choice, manifest)
    beside = await others(choice, services, request)

    async def render(kind: Format) -> Callable[[], bytes]:
        if of_phrase and not beside:
            maps = await services.maps(id, kept, request)
            explain = partial(services.explained, id, kept, request=request)
            shown, _ = await evidence_for(choice, phrases, services, request, maps.embedding, explain)
        else:
            direction = await direction_to(choice, beside, services, request) if beside else None
            shown = await services.map(id, kept, request, choice, direction)
        return _renderer(kind, shown, kept.image, style, scale, {"id": id, "model": services.model_name})

    recipe = (id, services.bundle.digest, choice, phrases, style, scale)
    return await draw_unless_known(
        request, services.drawings, recipe=recipe, formats=FORMATS, render=render, format=format
    )


@router.post(
    "/attention",
    summary="Draw a map of an image in the request",
    responses=ANSWERS | problems(400, 408, 413, 415),
    response_class=Response,
    openapi_extra=image_request(MapParameters),
)
async def attention_of_body(request: Request) -> Response:
    """The map that GET draws, in one request: nothing is kept. JSON has the predictions too. A form or JSON may have
    the parameters too. A second image stands in place of `like`, and a third in place of `against`.
    """
    services = services_of(request)
    manifest, scoring = services.bundle.manifest, services.scoring
    brought = ImageRequest(request, services)
    images, parameters = await brought.read(MapParameters, max_images=3)
    parameters = _of_images(parameters, images)
    of_phrase = is_of_phrase(parameters, parameters, manifest)
    check_choice(parameters, manifest, of_phrase=of_phrase)
    parameters = settled(parameters, manifest)
    if len(images) > 1:
        beside = [_usable(one) for one in await brought.run(images[1:], attention=False, success="embedded")]
        direction = direction_of(parameters, [one.embedding for one in beside], manifest)
        (asked,) = asked_for(direction, manifest)
    elif of_phrase:
        asked = NOTHING_ASKED
    else:
        likely = [MOST_LIKELY_CLASS] * services.explainer.records.explained
        asked = Asked(classes_for(parameters, scoring.labels, likely))
    explain = None if parameters.method == "measured" else asked
    run = brought.run(images[:1], attention=False, drawn=True, explain=explain, success="explained")
    (outcome,) = map(_usable, await run)
    compare = None
    if of_phrase and outcome.maps:
        kept = KeptImage(image=outcome.image, classes=())
        explain_again = partial(services.explain, kept, request=request)
        embedding = outcome.maps.embedding
        shown, compare = await evidence_for(parameters, parameters, services, request, embedding, explain_again)
    elif outcome.maps is None:
        followed = direction if len(images) > 1 else int(outcome.logits.argmax())
        shown = await services.measured(outcome.image, parameters, followed, request)
    elif len(images) > 1:
        shown = similarity(outcome.maps, manifest, parameters, direction)
    else:
        shown = choose(outcome.maps, manifest, parameters)
    kind = parameters.format or preferred_format(request.headers.getlist("accept"), among=FORMATS)
    about: dict[str, Any] = {"model": services.model_name}
    if compare:
        about["predictions"] = compare.scoring.rank(compare.logits(outcome.embedding), top_k=None)
    elif scoring.labels:
        about["predictions"] = scoring.rank(outcome.logits, top_k=TOP_K)
    draw_map = _renderer(kind, shown, outcome.image, parameters, parameters.scale, about)
    return await drawn(request, services.drawings, draw_map, kind)


def _of_images(parameters: MapParameters, images: Sequence[Upload]) -> MapParameters:
    """With names for the images after the first. Raises InvalidParameter for ids, which are of kept images."""
    if parameters.like is not None or (len(images) > 1 and parameters.against not in (None, MEAN, NOTHING)):
        raise InvalidParameter("like and against name kept images: send the images themselves, in this order.")
    if len(images) > 1 and not parameters.of_label:
        raise InvalidParameter("A second image is for method=evidence, positive_evidence and measured.")
    third = {"against": "the third image"} if len(images) > 2 else {}
    return parameters.model_copy(update={"like": "the second image", **third} if len(images) > 1 else {})


def _usable(outcome: Outcome) -> Processed:
    if isinstance(outcome, ServiceError):
        raise outcome
    return outcome


def _renderer(
    kind: Format, shown: AttentionMap, image: PreprocessedImage, style: Style, scale: Scale, about: dict[str, Any]
) -> Callable[[], bytes]:
    """What draws a map, or writes its numbers; JSON has `about` too."""

    def ends() -> Limits:
        return limits(shown.values, shown.siblings, scale, signed=shown.signed)

    def as_json() -> bytes:
        values, (rows, columns) = shown.values, shown.values.shape
        colors = ends()
        answer = AttentionResponse(
            **about,
            **shown.chosen.model_dump(),
            grid=(rows, columns),
            values=listed(values.ravel()),
            spread=None if shown.spread is None else listed(shown.spread.ravel()),
            min=float(values.min()),
            max=float(values.max()),
            scale=scale,
            limits=colors,
            beyond=colors.beyond(values),
            sum=float(values.sum(dtype=np.float64)),
            class_token_mass=shown.masses["class"],
            distillation_mass=shown.masses["distillation"],
            register_mass=shown.masses["register"],
            comparison=shown.comparison,
            receipt=shown.receipt,
            image=image.size,
            crop_box=image.box,
        )
        return answer.model_dump_json(exclude_none=True).encode()

    renderers: dict[Format, Callable[[], bytes]] = {
        "png": lambda: draw(shown.values, image, style, ends(), shown.spread),
        "json": as_json,
        "npy": partial(npy, shown.values if shown.spread is None else np.stack([shown.values, shown.spread])),
    }
    return renderers[kind]
