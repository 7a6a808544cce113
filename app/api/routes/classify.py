"""POST /classify: images in, ranked labels and the ids of their maps out."""

from functools import partial
from typing import Annotated

from fastapi import Request
from pydantic import BaseModel, Field

from app.api.description import image_request
from app.api.image_request import Attention, ImageRequest
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
from app.errors import NoClasses
from app.http.problems import problems
from app.inference.scoring import TOP_K, Prediction


class ClassifyParameters(Familiar):
    top_k: Annotated[
        int | None,
        Field(ge=1, description=f"Largest number of labels; {TOP_K} by default, or all with `threshold`"),
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
    if not services.bundle.manifest.labels:
        raise NoClasses
    brought = ImageRequest(request, services)
    images, parameters = await brought.read(ClassifyParameters, max_images=services.settings.max_images_per_request)
    outcomes = await brought.run(images, attention=parameters.attention, familiar=parameters, success="classified")
    top_k, threshold = parameters.top_k, parameters.threshold
    if threshold is None:
        top_k, threshold = top_k or TOP_K, 0.0

    def result(image: Processed, info: ImageInfo) -> Result:
        return Result(
            id=image.id,
            predictions=services.scoring.rank(image.logits, top_k=top_k, threshold=threshold),
            familiarity=image.familiarity,
            attention=services.attention_path(image.id),
            image=info,
        )

    labels = len(images) * (top_k or len(services.scoring.labels))
    found = await aside_if_many(partial(results, images, outcomes, result), labels=labels)
    return ClassifyResponse(model=services.model_name, results=found)
