"""POST /classify: images in, ranked labels and the ids of their maps out."""

import asyncio
import logging
import time
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel
from starlette.requests import ClientDisconnect

from app.api.hangup import unless_gone
from app.api.problems import UNANSWERED, Problem, problem_of, problems, respond
from app.api.services import ModelName, Services, ServicesDep, StagesDep
from app.api.uploads import read_images
from app.errors import DeadlineExceeded, Fault, ServiceError
from app.images.upload import Upload
from app.inference.labels import Prediction
from app.telemetry.logs import access_log
from app.telemetry.stages import Stages


class ImageInfo(BaseModel):
    """The upright image as decoded."""

    width: int
    height: int
    format: str


class Result(BaseModel):
    """One image. `id` and `attention` are there when its maps were kept."""

    id: str | None = None
    predictions: list[Prediction]
    attention: str | None = None
    image: ImageInfo


class FailedResult(BaseModel):
    """Takes the place of an image that could not be used."""

    error: Problem


class ClassifyResponse(BaseModel):
    model: ModelName
    results: list[Result | FailedResult]


IMAGE_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "image/*": {"schema": {"type": "string", "format": "binary"}},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": {"image": {"type": "array", "items": {"type": "string", "format": "binary"}}},
                }
            },
        },
    }
}

TOP_K = 5  # labels, unless a request says otherwise
MAX_HASHED_ON_LOOP_BYTES = 2**18  # hashing a larger image would block the event loop for a millisecond or more

log = logging.getLogger(__name__)

router = APIRouter()


@router.post(
    "/classify",
    response_model=ClassifyResponse,
    response_model_exclude_none=True,
    openapi_extra=IMAGE_BODY,
    responses=problems(400, 413, 415, 422, 500, 503),
)
async def classify(
    request: Request,
    services: ServicesDep,
    stages: StagesDep,
    top_k: Annotated[
        int | None, Query(ge=1, description=f"Labels to return at most; {TOP_K} by default, or all with `threshold`")
    ] = None,
    threshold: Annotated[
        float | None, Query(ge=0, le=1, allow_inf_nan=False, description="Return labels with at least this score only")
    ] = None,
    attention: Annotated[bool, Query(description="Keep the attention maps for GET /attention/{id}")] = True,
) -> Any:
    """Name what is in one or more images.

    Repeating a request is harmless: it gives the same scores and another id. In int8 the scores differ a little between
    repetitions, because they depend on which images share a forward pass.
    """
    try:
        images = await read_images(request, max_images=services.settings.max_images_per_request)
    except ClientDisconnect:
        return Response(status_code=UNANSWERED)
    deadline: float = request.state.deadline
    if threshold is None:
        top_k, threshold = top_k or TOP_K, 0.0
    with services.admission.admit(len(images), deadline=deadline) as answered:
        work = [
            _classify_one(
                services,
                upload,
                top_k=top_k,
                threshold=threshold,
                attention=attention,
                deadline=deadline,
                stages=stages,
            )
            for upload in images
        ]
        working = asyncio.gather(*work, return_exceptions=True)
        ended = await unless_gone(request, working)
        if ended is None:
            services.metrics.images("abandoned", len(images))
            return Response(status_code=UNANSWERED)
        outcomes = [_outcome(of_one) for of_one in ended]
        if any(isinstance(outcome, Result | DeadlineExceeded) for outcome in outcomes):
            answered()  # images that never reach the model say nothing about the wait for it
    for outcome in outcomes:
        services.metrics.images(outcome.kind if isinstance(outcome, ServiceError) else "classified")
    if access_log.isEnabledFor(logging.INFO):
        pairs = zip(images, outcomes, strict=True)
        request.state.images = [await _facts(services, upload, outcome) for upload, outcome in pairs]
    failures = [outcome for outcome in outcomes if isinstance(outcome, ServiceError)]
    if len(failures) == len(outcomes):
        return _all_failed(failures, request)
    results = [FailedResult(error=problem_of(o)) if isinstance(o, ServiceError) else o for o in outcomes]
    return ClassifyResponse(model=services.model_name, results=results)


async def _classify_one(
    services: Services,
    upload: Upload,
    *,
    top_k: int | None,
    threshold: float,
    attention: bool,
    deadline: float,
    stages: Stages,
) -> Result | ServiceError:
    try:
        async with asyncio.timeout(deadline - time.monotonic()):
            done = await services.classifier.classify(
                upload, top_k=top_k, threshold=threshold, attention=attention, deadline=deadline, stages=stages
            )
    except TimeoutError:
        return DeadlineExceeded()
    except ServiceError as error:
        return error
    return Result(
        id=done.id,
        predictions=done.predictions,
        attention=f"{services.settings.root_path}/attention/{done.id}" if done.id else None,
        image=ImageInfo(width=done.width, height=done.height, format=done.format),
    )


def _outcome(ended: Result | ServiceError | BaseException) -> Result | ServiceError:
    """What an image gets. An exception that was not expected fails this image alone."""
    if isinstance(ended, Result | ServiceError):
        return ended
    log.error("an image failed unexpectedly", exc_info=ended)
    return Fault()


async def _facts(services: Services, upload: Upload, outcome: Result | ServiceError) -> dict[str, object]:
    """What the log says about an image: enough to recognise it, and nothing of its content."""
    if len(upload) <= MAX_HASHED_ON_LOOP_BYTES:
        checksum = upload.sha256()
    else:
        checksum = await asyncio.get_running_loop().run_in_executor(services.cpu_pool, upload.sha256)
    what = {"problem": outcome.kind} if isinstance(outcome, ServiceError) else outcome.image.model_dump()
    return {"sha256": checksum.hex()[:16], "bytes": len(upload), **what}


def _all_failed(failures: list[ServiceError], request: Request) -> Response:
    """A single failure becomes the answer. Several are listed under the status that most of them share."""
    statuses = [failure.status for failure in failures]
    first = failures[statuses.index(max(statuses, key=statuses.count))]
    problem = problem_of(first)
    if len(failures) > 1:
        errors = [
            {"pointer": f"/images/{i}", **problem_of(f).model_dump(exclude_none=True)} for i, f in enumerate(failures)
        ]
        problem = problem.model_copy(update={"detail": "None of the images was classified.", "errors": errors})
    return respond(problem, request.scope["state"], first.headers)
