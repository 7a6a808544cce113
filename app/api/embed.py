"""POST /embed: images in, the vectors that the head reads out."""

from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field

from app.api.each_image import IMAGE_BODY, FailedResult, ImageInfo, each_image, image_info, refusal, results
from app.api.representation import MEDIA_TYPES, npy, preferred_format
from app.api.services import ModelName, ServicesDep, StagesDep
from app.classifier import Processed
from app.door.problems import problems


class Embedded(BaseModel):
    """One image. `id` and `attention` are there when its maps were kept."""

    id: str | None = None
    embedding: list[float] = Field(description="what the head reads, after the final norm and pooling")
    attention: str | None = None
    image: ImageInfo


class EmbedResponse(BaseModel):
    model: ModelName
    results: list[Embedded | FailedResult]


router = APIRouter(tags=["images"])


@router.post(
    "/embed",
    response_model=EmbedResponse,
    response_model_exclude_none=True,
    openapi_extra=IMAGE_BODY,
    responses=problems(400, 408, 413, 415, 422, 500, 503) | {200: {"content": {MEDIA_TYPES["npy"]: {}}}},
)
async def embed(
    request: Request,
    services: ServicesDep,
    stages: StagesDep,
    normalize: Annotated[bool, Query(description="Divide each embedding by its Euclidean norm")] = False,
    attention: Annotated[bool, Query(description="Keep the attention maps for GET /attention/{id}")] = False,
) -> Any:
    """Return the vector of each image that the head reads, after the final norm and pooling.

    With `Accept: application/x-npy` the answer is one float32 array (images, features). If one image fails, it is a
    problem.
    """
    outcomes = await each_image(request, services, stages, attention=attention, outcome="embedded")
    if preferred_format(request.headers.get("accept", ""), among=("json", "npy")) == "npy":
        embedded = [done for done in outcomes if isinstance(done, Processed)]
        if len(embedded) < len(outcomes):
            raise refusal(outcomes)
        rows = np.stack([_embedding(done, normalize=normalize) for done in embedded])
        return Response(npy(rows), media_type=MEDIA_TYPES["npy"])

    def result(done: Processed) -> Embedded:
        return Embedded(
            id=done.id,
            embedding=_embedding(done, normalize=normalize).tolist(),
            attention=services.attention_path(done.id),
            image=image_info(done),
        )

    return EmbedResponse(model=services.model_name, results=results(outcomes, result))


def _embedding(done: Processed, *, normalize: bool) -> npt.NDArray[np.float32]:
    """(features,)."""
    embedding = done.embedding.astype(np.float32)
    length = float(np.linalg.norm(embedding))
    return np.asarray(embedding / length) if normalize and length > 0 else embedding
