"""What the images of a request get: a result each, or one refusal."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from pydantic import BaseModel

from app.api.answers import FailedResult, ImageInfo
from app.classifier import Outcome, Processed
from app.door.problems import problem_of
from app.errors import ServiceError
from app.images.upload import Upload

MANY_LABELS = 2000  # ranking more would block the event loop for 8 ms or more

Described = TypeVar("Described", bound=BaseModel)
Ranked = TypeVar("Ranked")


async def aside_if_many(rank: Callable[[], Ranked], *, labels: int) -> Ranked:
    """`rank()`, which makes so many labels. If they are many, it runs outside of the event loop."""
    return rank() if labels <= MANY_LABELS else await asyncio.to_thread(rank)


def results(
    images: Sequence[Upload], outcomes: Sequence[Outcome], describe: Callable[[Processed, ImageInfo], Described]
) -> list[Described | FailedResult]:
    """What each image gets, in order. Raises their `refusal` if none succeeded."""
    if all(isinstance(outcome, ServiceError) for outcome in outcomes):
        raise refusal(images, outcomes)
    found: list[Described | FailedResult] = []
    for image, outcome in zip(images, outcomes, strict=True):
        if isinstance(outcome, ServiceError):
            found.append(FailedResult(error=problem_of(outcome.saying(file=image.name))))
        else:
            width, height = outcome.image.size
            info = ImageInfo(width=width, height=height, format=outcome.image.format, file=image.name)
            found.append(describe(outcome, info))
    return found


def refusal(images: Sequence[Upload], outcomes: Sequence[Outcome]) -> ServiceError:
    """The failure of a single image is the answer. Of several images, the failures are listed under the status that
    most of them share.
    """
    failures = [
        (outcome, problem_of(outcome.saying(pointer=f"/images/{i}", file=image.name)))
        for i, (image, outcome) in enumerate(zip(images, outcomes, strict=True))
        if isinstance(outcome, ServiceError)
    ]
    statuses = [error.status for error, _ in failures]
    first, _ = failures[statuses.index(max(statuses, key=statuses.count))]
    if len(outcomes) == 1:
        return first.saying(file=images[0].name)
    detail = f"{len(outcomes) - len(failures) or 'None'} of the {len(outcomes)} images could be used."
    return first.saying(detail=detail, errors=[problem.model_dump(exclude_none=True) for _, problem in failures])
