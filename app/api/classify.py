"""POST /classify: images in, ranked labels and the ids of their maps out."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel

from app.api.each_image import IMAGE_BODY, FailedResult, ImageInfo, each_image, image_info, results
from app.api.services import ModelName, ServicesDep, StagesDep
from app.classifier import Processed
from app.door.problems import problems
from app.errors import NoClasses
from app.inference.scoring import Prediction

TOP_K = 5  # labels, unless a request says otherwise


class Result(BaseModel):
    """One image. `id` and `attention` are there when its maps were kept."""

    id: str | None = None
    predictions: list[Prediction]
    attention: str | None = None
    image: ImageInfo


class ClassifyResponse(BaseModel):
    model: ModelName
    results: list[Result | FailedResult]


router = APIRouter(tags=["images"])


@router.post(
    "/classify",
    response_model_exclude_none=True,
    openapi_extra=IMAGE_BODY,
    responses=problems(400, 408, 409, 413, 415, 422, 500, 503),
)
async def classify(
    request: Request,
    services: ServicesDep,
    stages: StagesDep,
    top_k: Annotated[
        int | None, Query(ge=1, description=f"Largest number of labels; {TOP_K} by default, or all with `threshold`")
    ] = None,
    threshold: Annotated[
        float | None, Query(ge=0, le=1, allow_inf_nan=False, description="Return only labels with at least this score")
    ] = None,
    attention: Annotated[bool, Query(description="Keep the attention maps for GET /attention/{id}")] = True,
) -> ClassifyResponse:
    """Classify one or more images.

    Repeating a request is harmless: it gives the same scores and a new id.
    """
    if not services.bundle.manifest.labels:
        raise NoClasses
    outcomes = await each_image(request, services, stages, attention=attention, outcome="classified")
    if threshold is None:
        top_k, threshold = top_k or TOP_K, 0.0

    def result(done: Processed) -> Result:
        return Result(
            id=done.id,
            predictions=services.scoring.rank(done.logits, top_k=top_k, threshold=threshold),
            attention=services.attention_path(done.id),
            image=image_info(done),
        )

    return ClassifyResponse(model=services.model_name, results=results(outcomes, result))
