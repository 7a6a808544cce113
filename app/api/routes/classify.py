"""POST /classify: images in, ranked labels and the ids of their maps out."""

from functools import partial
from typing import Annotated

from fastapi import Request
from pydantic import BaseModel, Field

from app.api.description import image_request
from app.api.image_request import Attention, ImageRequest
from app.api.parameters import refused
from app.api.phrases import PhraseParameters, among, check_classes
from app.api.results import (
    FailedResult,
    Familiar,
    FamiliarityShare,
    ImageInfo,
    MapsId,
    MapsPath,
    ModelName,
    aside_if_many,
    results,
)
from app.api.route import CheckedRouter
from app.api.services import services_of
from app.classifier import Processed
from app.http.problems import problems
from app.inference.scoring import TOP_K, Prediction


class ClassifyParameters(Familiar, PhraseParameters):
    top_k: Annotated[
        int | None,
        Field(ge=1, description=f"Largest number of labels; {TOP_K} by default, or all with `threshold` or `labels`"),
    ] = None
    threshold: Annotated[
        float | None,
        Field(ge=0, le=1, allow_inf_nan=False, description="Return only labels with at least this score"),
    ] = None
    attention: Attention = True


class Result(BaseModel):
    """One image. `id` and `attention` are there when it was kept, `familiarity` when the model knows its images."""

    id: MapsId = None
    predictions: list[Prediction]
    familiarity: FamiliarityShare = None
    attention: MapsPath = None
    image: ImageInfo


class ClassifyResponse(BaseModel):
    model: ModelName
    results: list[Result | FailedResult]


router = CheckedRouter(tags=["images"])


@router.post(
    "/classify",
    summary="Classify images",
    response_model_exclude_none=True,
    openapi_extra=image_request(ClassifyParameters),
    responses=problems(400, 408, 409, 413, 415, 422),
)
async def classify(request: Request) -> ClassifyResponse:
    """Repeating a request is harmless: it gives the same scores and a new id. A form or JSON may have the parameters
    too.
    """
    services = services_of(request)
    brought = ImageRequest(request, services)
    images, parameters = await brought.read(ClassifyParameters, max_images=services.settings.max_images_per_request)
    if parameters.prompt and not parameters.labels:
        raise refused("prompt", "prompt needs labels.")
    check_classes(services.bundle.manifest, parameters.labels)
    compare = await among(parameters.labels, parameters.prompt, services, request) if parameters.labels else None
    scoring = compare.scoring if compare else services.scoring
    outcomes = await brought.run(images, attention=parameters.attention, familiar=parameters, success="classified")
    top_k, threshold = parameters.top_k, parameters.threshold
    if threshold is None:
        top_k, threshold = top_k or (len(scoring.labels) if compare else TOP_K), 0.0

    def result(image: Processed, info: ImageInfo) -> Result:
        logits = compare.logits(image.embedding) if compare else image.logits
        return Result(
            id=image.id,
            predictions=scoring.rank(logits, top_k=top_k, threshold=threshold),
            familiarity=image.familiarity,
            attention=services.attention_path(image.id),
            image=info,
        )

    labels = len(images) * (top_k or len(scoring.labels))
    found = await aside_if_many(partial(results, images, outcomes, result), labels=labels)
    return ClassifyResponse(model=services.model_name, results=found)
