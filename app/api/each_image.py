"""The way of a request with images, whatever is asked of each: out of the body, through the model, and into the log."""

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel
from starlette.requests import ClientDisconnect

from app.api.hangup import unless_gone
from app.api.json_images import JSON_BODY
from app.api.representation import BINARY
from app.api.services import Services
from app.api.uploads import read_images
from app.classifier import Image, Processed
from app.door.problems import Problem, Refusal, problem_of
from app.errors import DeadlineExceeded, Fault, ServiceError
from app.images.upload import Upload
from app.telemetry.logs import access_log
from app.telemetry.stages import Stages

IMAGE_BODY: dict[str, Any] = {  # of OpenAPI; the image itself may be called by any type, and generators know this one
    "requestBody": {
        "required": True,
        "content": {
            "application/octet-stream": {"schema": BINARY},
            "multipart/form-data": {
                "schema": {
                    "title": "ImageForm",
                    "type": "object",
                    "properties": {"image": {"type": "array", "items": BINARY}},
                    "required": ["image"],
                }
            },
            "application/json": {"schema": JSON_BODY},
        },
    }
}
MAX_HASHED_ON_LOOP_BYTES = 2**18  # hashing a larger image would block the event loop for a millisecond or more

log = logging.getLogger(__name__)

Outcome = Processed | ServiceError
Answer = TypeVar("Answer", bound=BaseModel)


class ImageInfo(BaseModel):
    """The upright image as decoded."""

    width: int
    height: int
    format: str


class FailedResult(BaseModel):
    """Takes the place of an image that could not be used."""

    error: Problem


async def each_image(
    request: Request, services: Services, stages: Stages, *, attention: bool, outcome: str
) -> list[Outcome]:
    """Runs the model on every image of the request, and keeps the maps of each if `attention`.

    `outcome` counts the images that succeed in the metrics. Raises Refusal if none does, and what `read_images` and
    `processed` raise.
    """
    uploads = await read_images(request, services.json_reader, max_images=services.settings.max_images_per_request)
    outcomes = await processed(request, services, stages, uploads, attention=attention, outcome=outcome)
    if not any(isinstance(of_one, Processed) for of_one in outcomes):
        raise refusal(outcomes)
    return outcomes


async def processed(
    request: Request, services: Services, stages: Stages, images: Sequence[Image], *, attention: bool, outcome: str
) -> list[Outcome]:
    """What becomes of images that have been read, in order.

    Raises ClientDisconnect, and what admission raises.
    """
    deadline: float = request.state.deadline
    with services.admission.admit(len(images), deadline=deadline) as answered:
        work = (_one(services, image, attention=attention, deadline=deadline, stages=stages) for image in images)
        working = asyncio.gather(*work, return_exceptions=True)
        ended = await unless_gone(request, working)
        if ended is None:
            services.metrics.images("abandoned", len(images))
            raise ClientDisconnect
        outcomes = [_expected(of_one) for of_one in ended]
        if any(isinstance(of_one, Processed | DeadlineExceeded) for of_one in outcomes):
            answered()  # images that never reach the model say nothing about the wait for it
    for of_one in outcomes:
        services.metrics.images(of_one.kind if isinstance(of_one, ServiceError) else outcome)
    if access_log.isEnabledFor(logging.INFO):
        pairs = zip(images, outcomes, strict=True)
        request.state.images = [await _facts(services, image, of_one) for image, of_one in pairs]
    return outcomes


def results(outcomes: list[Outcome], result: Callable[[Processed], Answer]) -> list[Answer | FailedResult]:
    """What each image gets, in order."""
    return [FailedResult(error=problem_of(o)) if isinstance(o, ServiceError) else result(o) for o in outcomes]


def image_info(processed: Processed) -> ImageInfo:
    return ImageInfo(width=processed.width, height=processed.height, format=processed.format)


def refusal(outcomes: list[Outcome]) -> Refusal:
    """The failure of a single image is the answer. Of several images, the failures are listed under the status that
    most of them share.
    """
    failures = {i: outcome for i, outcome in enumerate(outcomes) if isinstance(outcome, ServiceError)}
    statuses = [failure.status for failure in failures.values()]
    first = [*failures.values()][statuses.index(max(statuses, key=statuses.count))]
    problem = problem_of(first)
    if len(outcomes) > 1:
        errors = [
            {"pointer": f"/images/{i}", **problem_of(failure).model_dump(exclude_none=True)}
            for i, failure in failures.items()
        ]
        used = len(outcomes) - len(failures)
        detail = f"{used or 'None'} of the {len(outcomes)} images could be used."
        problem = problem.model_copy(update={"detail": detail, "errors": errors})
    return Refusal(problem, first.headers)


async def _one(services: Services, image: Image, *, attention: bool, deadline: float, stages: Stages) -> Outcome:
    work: Awaitable[Processed] = services.classifier.process(image, keep=attention, deadline=deadline, stages=stages)
    try:
        async with asyncio.timeout(deadline - time.monotonic()):
            return await work
    except TimeoutError:
        return DeadlineExceeded()
    except ServiceError as error:
        return error


def _expected(ended: Outcome | BaseException) -> Outcome:
    """What an image gets. An exception that was not expected fails this image alone."""
    if isinstance(ended, Processed | ServiceError):
        return ended
    log.error("an image failed unexpectedly", exc_info=ended)
    return Fault()


async def _facts(services: Services, image: Image, outcome: Outcome) -> dict[str, object]:
    """What the log says about an image: enough to recognise it, and nothing of its content."""
    size = len(image) if isinstance(image, Upload) else image.nbytes
    checksum = image.sha256 if isinstance(image, Upload) else hashlib.sha256(image.data).digest
    if size <= MAX_HASHED_ON_LOOP_BYTES:
        digest = checksum()
    else:
        digest = await asyncio.get_running_loop().run_in_executor(services.cpu_pool, checksum)
    what = {"problem": outcome.kind} if isinstance(outcome, ServiceError) else image_info(outcome).model_dump()
    return {"sha256": digest.hex()[:16], "bytes": size, **what}
