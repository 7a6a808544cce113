"""Images in JSON: base64 under `inputs`, as Hugging Face's clients send it, or under `image` or `images`."""

from functools import partial
from typing import Annotated, Any

from fastapi import Request
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError

from app.api.body.base64_image import decode
from app.api.body.json_body import JsonBody
from app.api.body.json_reader import JsonReader
from app.api.parameters import Given, as_text
from app.errors import MalformedRequest
from app.images.upload import Upload
from app.telemetry.request_state import RequestState

_NAMES = ("inputs", "image", "images")  # of the images
_FORM = 'The body must be JSON such as {"inputs": "base64 of an image file"}; "parameters" are optional.'


Value = StrictStr | dict[str, StrictInt]


class Hosting(BaseModel):
    """`options` of Hugging Face's own hosting: of its cache and its waiting. They change no label."""

    model_config = ConfigDict(extra="forbid")

    use_cache: Any = None
    use_gpu: Any = None
    wait_for_model: Any = None


class JsonImages(BaseModel):
    """The small part of a body in JSON: objects mark large images. Members beside these are parameters."""

    model_config = ConfigDict(extra="allow")

    inputs: Value | Annotated[list[Value], Field(fail_fast=True)] = Field(validation_alias=AliasChoices(*_NAMES))
    parameters: dict[str, Any] | None = None
    options: Hosting | None = None


async def read_json(request: Request, reader: JsonReader, *, max_images: int) -> tuple[list[Upload], Given]:
    """The images of a body in JSON, and the parameters in it.

    Raises MalformedRequest, ClientDisconnect, and what admission and the door raise.
    """
    body = bytearray()
    async for piece in request.stream():
        body += piece
    return await reader.read(
        partial(_read, max_images=max_images), body, deadline=RequestState.of(request.scope).deadline
    )


def _read(json: bytes | bytearray, *, max_images: int) -> tuple[list[Upload], Given]:
    try:
        body = JsonBody(json)
        content = JsonImages.model_validate_json(body.rest)
    except ValidationError:
        raise MalformedRequest(_FORM) from None
    except ValueError as error:
        raise MalformedRequest(f"{_FORM} The body has {error}.") from None
    values = content.inputs if isinstance(content.inputs, list) else [content.inputs]
    if not 1 <= len(values) <= max_images:
        raise MalformedRequest(f"The request has {len(values)} images: send from 1 to {max_images}.")
    texts = [text for value in values if (text := body.text(value)) is not None]
    if len(texts) < len(values):
        raise MalformedRequest(_FORM)
    extra = content.model_extra or {}
    if any(name in extra for name in _NAMES):
        raise MalformedRequest("The JSON has images under more than one name.")
    members = [*extra.items(), *(content.parameters or {}).items()]
    given = [(name, as_text(value)) for name, value in members if value is not None]
    try:
        return [decode(text) for text in texts], given
    except ValueError:
        raise MalformedRequest("An image in JSON must be base64.") from None
