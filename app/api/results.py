"""What the images of a request get: a result each, or one refusal. And the pieces of which answers in JSON are made."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, Field
from pydantic.json_schema import SkipJsonSchema

from app.api.parameters import refused
from app.bundle import Manifest
from app.classifier import Outcome, Processed
from app.errors import ServiceError
from app.http.problems import Problem, problem_of
from app.images.upload import Upload
from app.inference.familiarity import NO_IMAGES
from app.settings import Settings

MANY_LABELS = 2000  # ranking more would block the event loop for 8 ms or more

MapsId = Annotated[str | SkipJsonSchema[None], Field(examples=["rfQjy4XodVjlp0sAFHEF_w"])]
MapsPath = Annotated[str | SkipJsonSchema[None], Field(examples=["/attention/rfQjy4XodVjlp0sAFHEF_w"])]
FamiliarityShare = Annotated[
    float | SkipJsonSchema[None],
    Field(examples=[0.43], description="the share of held-out images that are less familiar to the model"),
]


class ModelName(BaseModel):
    name: str = Field(examples=["shapes"])
    digest: str = Field(examples=["656ccfb2c4873f11"])  # sha256 of the bundle's manifest


class ImageAnswer(BaseModel):
    """What every answer about one classified image begins with."""

    id: str
    model: ModelName


class ImageInfo(BaseModel):
    """The upright image as decoded, and the name of its file in a form."""

    width: int = Field(examples=[384])
    height: int = Field(examples=[384])
    format: str = Field(examples=["JPEG"])
    file: Annotated[str | SkipJsonSchema[None], Field(examples=["star.jpg"])] = None


class FailedResult(BaseModel):
    """Takes the place of an image that could not be used."""

    error: Problem


Described = TypeVar("Described", bound=BaseModel)
Ranked = TypeVar("Ranked")


class Familiar(BaseModel):
    """Parameters of paths that tell familiarity: which images a request refuses, because they are unlike those that the
    model knows.
    """

    unfamiliar: Annotated[
        Literal["answer", "refuse"] | None,
        Field(description="`refuse` an image below the least familiarity, with 422; the server's settings by default"),
    ] = None
    least_familiarity: Annotated[
        float | None,
        Field(ge=0, le=1, allow_inf_nan=False, description="Least familiarity; given alone, it refuses too"),
    ] = None

    def least(self, settings: Settings, manifest: Manifest) -> float:
        """The familiarity below which an image is refused; 0 refuses none.

        Raises InvalidParameter if the request refuses some and the bundle does not know its images.
        """
        if (self.unfamiliar or (settings.unfamiliar if self.least_familiarity is None else "refuse")) == "answer":
            return 0.0
        if not manifest.familiarity:
            name = "least_familiarity" if self.unfamiliar is None else "unfamiliar"
            raise refused(name, f"{name} has no meaning here: {NO_IMAGES}")
        return settings.least_familiarity if self.least_familiarity is None else self.least_familiarity


BY_SETTINGS = Familiar()


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
