"""POST /embed: images in, the vectors that the head reads out."""

from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from fastapi import Request, Response
from pydantic import BaseModel, Field

from app.api.description import image_request
from app.api.image_request import Attention, ImageRequest
from app.api.render import MEDIA_TYPES, npy, preferred_format
from app.api.results import (
    FailedResult,
    Familiar,
    FamiliarityShare,
    ImageInfo,
    MapsId,
    MapsPath,
    ModelName,
    refusal,
    results,
)
from app.api.route import CheckedRouter
from app.api.services import services_of
from app.classifier import Processed
from app.http.problems import problems


class EmbedParameters(Familiar):
    normalize: Annotated[bool, Field(description="Divide each embedding by its Euclidean norm")] = False
    attention: Attention = False


class Embedded(BaseModel):
    """One image. `id` and `attention` are there when it was kept, `familiarity` when the model knows its images."""

    id: MapsId = None
    embedding: list[float] = Field(description="what the head reads, after the final norm and pooling")
    familiarity: FamiliarityShare = None
    attention: MapsPath = None
    image: ImageInfo


class EmbedResponse(BaseModel):
    model: ModelName
    results: list[Embedded | FailedResult]


router = CheckedRouter(tags=["images"])


@router.post(
    "/embed",
    summary="Get the embeddings of images",
    response_model=EmbedResponse,
    response_model_exclude_none=True,
    openapi_extra=image_request(EmbedParameters),
    responses=problems(400, 408, 413, 415, 422) | {200: {"content": {MEDIA_TYPES["npy"]: {}}}},
)
async def embed(request: Request) -> Any:
    """An embedding is the vector that the head reads, after the final norm and pooling.

    With `Accept: application/x-npy` the answer is one float32 array (images, features). If one image fails, it is a
    problem.
    """
    services = services_of(request)
    brought = ImageRequest(request, services)
    images, parameters = await brought.read(EmbedParameters, max_images=services.settings.max_images_per_request)
    outcomes = await brought.run(images, attention=parameters.attention, familiar=parameters, success="embedded")
    if preferred_format(request.headers.getlist("accept"), among=("json", "npy")) == "npy":
        embedded = [outcome for outcome in outcomes if isinstance(outcome, Processed)]
        if len(embedded) < len(outcomes):
            raise refusal(images, outcomes)
        rows = np.stack([_embedding(image, normalize=parameters.normalize) for image in embedded])
        return Response(npy(rows), media_type=MEDIA_TYPES["npy"])

    def result(image: Processed, info: ImageInfo) -> Embedded:
        return Embedded(
            id=image.id,
            embedding=_embedding(image, normalize=parameters.normalize).tolist(),
            familiarity=image.familiarity,
            attention=services.attention_path(image.id),
            image=info,
        )

    return EmbedResponse(model=services.model_name, results=results(images, outcomes, result))


def _embedding(image: Processed, *, normalize: bool) -> npt.NDArray[np.float32]:
    """(features,)."""
    embedding = image.embedding.astype(np.float32)
    length = float(np.linalg.norm(embedding))
    return np.asarray(embedding / length) if normalize and length > 0 else embedding
