"""POST /classify: pictures in, ranked labels and the ids of their maps out."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from app.errors import ServiceError, problem_of, problems, respond
from app.hangup import unless_gone
from app.schemas import ClassifyResponse, FailedResult, ImageInfo, Result
from app.services import Parts, Services
from app.uploads import read_images

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

router = APIRouter()


@router.post(
    "/classify",
    response_model=ClassifyResponse,
    response_model_exclude_none=True,
    openapi_extra=IMAGE_BODY,
    responses=problems(400, 413, 415, 422, 503),
)
async def classify(
    request: Request,
    parts: Parts,
    top_k: Annotated[int, Query(ge=1, description="Labels to return; fewer where the model has fewer")] = 5,
    attention: Annotated[bool, Query(description="Keep the attention maps for GET /attention/{id}")] = True,
) -> Response:
    """Name what is in one or more images. Repeating a request is harmless: the same scores, another id."""
    images = await read_images(request, max_images=parts.settings.max_images_per_request)
    with parts.batcher.admit(len(images)):
        work = [_classify_one(parts, data, top_k=top_k, attention=attention) for data in images]
        outcomes = await unless_gone(request, asyncio.gather(*work))
    if outcomes is None:
        return Response(status_code=499)  # nobody reads it
    failures = [outcome for outcome in outcomes if isinstance(outcome, ServiceError)]
    if len(failures) == len(outcomes):
        return _all_failed(failures)
    results = [FailedResult(error=problem_of(o)) if isinstance(o, ServiceError) else o for o in outcomes]
    answer = ClassifyResponse(model=parts.model_name, results=results)
    return Response(answer.model_dump_json(exclude_none=True), media_type="application/json")


async def _classify_one(parts: Services, data: bytes, *, top_k: int, attention: bool) -> Result | ServiceError:
    try:
        done = await parts.classifier.classify(data, top_k=top_k, attention=attention)
    except ServiceError as error:
        return error
    return Result(
        id=done.id,
        predictions=done.predictions,
        attention=f"/attention/{done.id}" if done.id else None,
        image=ImageInfo(width=done.width, height=done.height, format=done.format),
    )


def _all_failed(failures: list[ServiceError]) -> Response:
    """One failure speaks for itself; several are listed under the status that most of them share."""
    statuses = [failure.status for failure in failures]
    first = failures[statuses.index(max(statuses, key=statuses.count))]
    problem = problem_of(first)
    if len(failures) > 1:
        errors = [
            {"pointer": f"/images/{i}", **problem_of(f).model_dump(exclude_none=True)} for i, f in enumerate(failures)
        ]
        problem = problem.model_copy(update={"detail": "None of the images can be used.", "errors": errors})
    return respond(problem, first.headers)
