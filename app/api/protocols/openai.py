"""POST /v1/embeddings: what OpenAI's clients send for embeddings, and the list that they expect.

https://platform.openai.com/docs/api-reference/embeddings. Images stand among the texts: as data URLs, which that API's
types allow, or as vLLM and others take them: {"image": ...}, or {"type": "image_url", "image_url": {"url": ...}}.
Vectors have length 1, as OpenAI's have.
"""

import base64
from typing import Annotated, Any, Literal

from fastapi import Request
from pydantic import BaseModel, InstanceOf, StrictStr, StringConstraints, ValidationError

from app.api.description import STAR
from app.api.image_request import ImageRequest
from app.api.phrases import MOST_CHARACTERS, MOST_TEXTS, embedded
from app.api.results import refusal
from app.api.route import CheckedRouter
from app.api.routes.embed import embedding_of
from app.api.services import services_of
from app.classifier import Processed
from app.errors import MalformedRequest
from app.http.problems import problems
from app.images.json_body import image_of, is_data_url
from app.images.upload import Upload
from app.inference.digits import listed

FORM = 'The body must be JSON such as {"input": "a red hat"} or {"input": ["data:image/jpeg;base64,..."]}.'

Data = StrictStr | InstanceOf[Upload]  # a long string comes as the bytes that it stands for
Said = Annotated[StrictStr, StringConstraints(min_length=1)]
SCHEMA = {
    "title": "EmbeddingRequest",
    "type": "object",
    "properties": {
        "input": {"description": 'A text, an image as data URL or {"image": data URL}, or a list of these'},
        "encoding_format": {"type": "string", "enum": ["float", "base64"], "default": "float"},
    },
    "required": ["input"],
    "example": {"input": [{"image": f"data:image/png;base64,{STAR}"}]},
}


class Address(BaseModel):
    url: Data


class Item(BaseModel):
    image: Data | None = None
    image_url: Address | None = None
    text: Said | None = None


Input = Said | InstanceOf[Upload] | Item


class EmbeddingRequest(BaseModel):  # `model`, `user` and other members change nothing
    input: Input | list[Input]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Any = None


class Embedding(BaseModel):
    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class EmbeddingList(BaseModel):
    object: Literal["list"] = "list"
    data: list[Embedding]
    model: str
    usage: dict[str, int] = {"prompt_tokens": 0, "total_tokens": 0}  # they are not counted


router = CheckedRouter(tags=["OpenAI"])


@router.post(
    "/v1/embeddings",
    summary="Get embeddings as OpenAI's clients ask for them",
    responses=problems(400, 408, 413, 415, 422),
    openapi_extra={"requestBody": {"required": True, "content": {"application/json": {"schema": SCHEMA}}}},
)
async def embeddings(request: Request) -> EmbeddingList:
    """Vectors of images, and of texts where the bundle has a text tower, in the order of `input`."""
    services = services_of(request)
    brought = ImageRequest(request, services)
    try:
        asked = EmbeddingRequest.model_validate(await brought.read_json(await brought.received()))
    except ValidationError:
        raise MalformedRequest(FORM) from None
    if asked.dimensions is not None:
        raise MalformedRequest("dimensions is not supported: vectors are as long as the model makes them.")
    items = [_content(item) for item in (asked.input if isinstance(asked.input, list) else [asked.input])]
    texts = [item for item in items if isinstance(item, str)]
    images = [item for item in items if isinstance(item, Upload)]
    most = services.settings.max_images_per_request
    if not items or len(texts) > MOST_TEXTS or len(images) > most or max(map(len, texts), default=1) > MOST_CHARACTERS:
        limits = f"{MOST_TEXTS} texts of {MOST_CHARACTERS} characters and {most} images"
        raise MalformedRequest(f"The request has {len(items)} items: send from 1 to {limits}.")
    of_texts = iter(await embedded(texts, services, request) if texts else ())
    outcomes = await brought.run(images, attention=False, success="embedded") if images else []
    usable = [embedding_of(outcome, normalize=True) for outcome in outcomes if isinstance(outcome, Processed)]
    if len(usable) < len(images):
        raise refusal(images, outcomes)
    of_images = iter(usable)
    vectors = [next(of_texts if isinstance(item, str) else of_images).astype("<f4") for item in items]
    encoded = [base64.b64encode(v.data).decode() if asked.encoding_format == "base64" else listed(v) for v in vectors]
    data = [Embedding(index=place, embedding=one) for place, one in enumerate(encoded)]
    return EmbeddingList(data=data, model=services.bundle.manifest.name)


def _content(item: Input) -> str | Upload:
    if not isinstance(item, Item):
        return image_of(item) if isinstance(item, Upload) or is_data_url(item) else item
    if [item.image, item.image_url, item.text].count(None) != 2:
        raise MalformedRequest(FORM)
    image = item.image_url.url if item.image_url else item.image
    return str(item.text) if image is None else image_of(image)
