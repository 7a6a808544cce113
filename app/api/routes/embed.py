"""POST /embed: images in, the vectors that the head reads out, or the tokens from which they are pooled. Or texts."""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from fastapi import Request, Response
from pydantic import BaseModel, Field

from app.api.description import image_request
from app.api.image_request import Attention, ImageRequest
from app.api.parameters import refused
from app.api.phrases import MOST_TEXTS, OneOrMore, embedded
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
from app.api.services import Services, services_of
from app.api.tokens import DtypeField, LayerField, answered, as_dtype, check_accepted
from app.bundle import Manifest
from app.classifier import Processed
from app.errors import MalformedRequest
from app.http.problems import problems
from app.inference.digits import listed
from app.inference.tokens import Which, array_for
from app.inference.unit import unit


class EmbedParameters(Familiar):
    normalize: Annotated[bool, Field(description="Divide each embedding by its Euclidean norm, or each token")] = False
    attention: Attention = False
    tokens: Annotated[
        Which | None,
        Field(description="In place of embeddings: `patches` (rows, columns, features), or `all` (tokens, features)"),
    ] = None
    layer: LayerField = None
    dtype: DtypeField = "float32"
    text: Annotated[
        OneOrMore | None,
        Field(description=f"In place of images: a text, or a list in JSON of at most {MOST_TEXTS}"),
    ] = None

    def array(self, manifest: Manifest) -> str | None:
        """The array of tokens that is asked for, if any. Raises InvalidParameter for what does not fit together."""
        if self.tokens is None:
            if self.layer is not None:
                raise refused("layer", "layer needs tokens=patches or tokens=all.")
            return None
        if self.attention is not False:
            raise refused("attention", "attention is not for tokens: their answer has no place for an id.")
        return array_for(manifest, self.layer)


class Embedded(BaseModel):
    """One image. `id` and `attention` are there when it was kept, `familiarity` when the model knows its images."""

    id: MapsId = None
    embedding: list[float] = Field(description="what the head reads, after the final norm and pooling")
    familiarity: FamiliarityShare = None
    attention: MapsPath = None
    image: ImageInfo


class EmbeddedText(BaseModel):
    text: str
    embedding: list[float] = Field(description="of length 1")


class EmbedResponse(BaseModel):
    model: ModelName
    results: Sequence[Embedded | EmbeddedText | FailedResult]


router = CheckedRouter(tags=["images"])


@router.post(
    "/embed",
    summary="Get the embeddings of images",
    response_model=EmbedResponse,
    response_model_exclude_none=True,
    openapi_extra=image_request(EmbedParameters),
    responses=problems(400, 406, 408, 413, 415, 422) | {200: {"content": {MEDIA_TYPES["npy"]: {}}}},
)
async def embed(request: Request) -> Any:
    """An embedding is the vector that the head reads, after the final norm and pooling.

    With `Accept: application/x-npy` the answer is one array (images, features). With `tokens` it is always one:
    (images, rows, columns, features) of the patches, or (images, tokens, features) of all. If one image fails, it is a
    problem. `text` in place of images gives the vectors of texts, where the bundle has a text tower.
    """
    services = services_of(request)
    brought = ImageRequest(request, services)
    most = services.settings.max_images_per_request
    images, parameters = await brought.read(EmbedParameters, max_images=most, instead="text")
    if parameters.text is not None:
        if images:
            raise MalformedRequest("Send images or text, and not both.")
        if parameters.tokens or parameters.attention is not False:
            raise refused("text", "text has an embedding alone: no tokens, and no maps.")
        return await _of_texts(parameters, services, request)
    manifest = services.bundle.manifest
    array = parameters.array(manifest)
    if array:
        check_accepted(request)
    outcomes = await brought.run(
        images, attention=parameters.attention, tokens=array, familiar=parameters, success="embedded"
    )
    if array or preferred_format(request.headers.getlist("accept"), among=("json", "npy")) == "npy":
        embedded = [outcome for outcome in outcomes if isinstance(outcome, Processed)]
        if len(embedded) < len(outcomes):
            raise refusal(images, outcomes)
        if parameters.tokens:
            arrays = [image.tokens for image in embedded if image.tokens is not None]
            return await answered(arrays, manifest, parameters.tokens, parameters.dtype, normalize=parameters.normalize)
        rows = np.stack([embedding_of(image, normalize=parameters.normalize) for image in embedded])
        return Response(npy(as_dtype(rows, parameters.dtype)), media_type=MEDIA_TYPES["npy"])

    def result(image: Processed, info: ImageInfo) -> Embedded:
        return Embedded(
            id=image.id,
            embedding=listed(embedding_of(image, normalize=parameters.normalize)),
            familiarity=image.familiarity,
            attention=services.attention_path(image.id),
            image=info,
        )

    return EmbedResponse(model=services.model_name, results=results(images, outcomes, result))


async def _of_texts(parameters: EmbedParameters, services: Services, request: Request) -> Response | EmbedResponse:
    vectors = await embedded(parameters.text or (), services, request)
    if preferred_format(request.headers.getlist("accept"), among=("json", "npy")) == "npy":
        return Response(npy(as_dtype(vectors, parameters.dtype)), media_type=MEDIA_TYPES["npy"])
    pairs = zip(parameters.text or (), listed(vectors), strict=True)
    return EmbedResponse(
        model=services.model_name, results=[EmbeddedText(text=text, embedding=vector) for text, vector in pairs]
    )


def embedding_of(image: Processed, *, normalize: bool) -> npt.NDArray[np.float32]:
    """(features,)."""
    embedding = image.embedding.astype(np.float32)
    return unit(embedding) if normalize else embedding
