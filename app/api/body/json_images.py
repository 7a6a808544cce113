"""Images in JSON: base64 under `inputs`, as Hugging Face's clients send it, or under `image` or `images`."""

from functools import partial
from typing import Annotated, Any, Literal, get_args

from fastapi import Request
from pydantic import AliasChoices, BaseModel, Field, StrictInt, StrictStr, ValidationError

from app.api.body.base64_image import decode
from app.api.body.json_body import JsonBody
from app.api.body.json_reader import JsonReader
from app.errors import InvalidParameter, MalformedRequest
from app.images.upload import Upload
from app.inference.scoring import TOP_K

Function = Literal["softmax", "sigmoid", "none"]  # what makes a score of a logit
STAR = (  # a small PNG of a star, for the example in /docs
    "iVBORw0KGgoAAAANSUhEUgAAACAAAAAgAQAAAABbAUdZAAAAWUlEQVR42m2NwQ2AIBRDH5UEj47gJuBmjMYIjsAIng3heyBw8p1ek6aFQUZDXBkmxDROh"
    "F9xPyCaNVVoBLOqBlUdygbxEqXPctJaYX70iHgr8ATk7pY9iV8+sh0WXCRmr8sAAAAASUVORK5CYII="
)
JSON_BODY: dict[str, Any] = {  # of OpenAPI: JsonImages under the first of its names
    "title": "ImagesInJson",
    "type": "object",
    "properties": {
        "inputs": {
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
            "description": "base64 of an image file, or a list of such",
        },
        "parameters": {
            "title": "PipelineParameters",
            "type": "object",
            "properties": {
                "top_k": {"type": "integer", "minimum": 1},
                "function_to_apply": {"type": "string", "enum": [*get_args(Function)]},
            },
        },
    },
    "required": ["inputs"],
    "example": {"inputs": STAR},
}
_FORM = 'The JSON must be {"inputs": "base64 of an image file"}; "parameters" are optional.'


class Parameters(BaseModel):
    """Those of transformers' pipeline for image classification. Others are ignored."""

    top_k: Annotated[int | None, Field(ge=1, description=f"Labels to return at most; {TOP_K} by default")] = None
    function_to_apply: Annotated[
        Function | None,
        Field(description="Turns logits into scores; by default the function that the model was trained for"),
    ] = None


Value = StrictStr | dict[str, StrictInt]


class JsonImages(BaseModel):
    """The small part of a body in JSON: objects mark large images."""

    inputs: Value | Annotated[list[Value], Field(fail_fast=True)] = Field(
        validation_alias=AliasChoices("inputs", "image", "images")
    )
    parameters: Parameters | None = None


async def read_json(request: Request, reader: JsonReader, *, max_images: int) -> tuple[list[Upload], Parameters]:
    """The images of a body in JSON, and what it asks of them.

    Raises MalformedRequest, InvalidParameter, ClientDisconnect, and what admission and the door raise.
    """
    body = bytearray()
    async for piece in request.stream():
        body += piece
    return await reader.read(partial(_read, max_images=max_images), body, deadline=request.state.deadline)


def _read(json: bytes | bytearray, *, max_images: int) -> tuple[list[Upload], Parameters]:
    try:
        body = JsonBody(json)
        content = JsonImages.model_validate_json(body.rest)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        if first["loc"][:1] == ("parameters",) and len(first["loc"]) > 1:
            raise InvalidParameter(f"{first['loc'][1]}: {first['msg']}.") from None
        raise MalformedRequest(_FORM) from None
    except ValueError as error:
        raise MalformedRequest(f"{_FORM} The body has {error}.") from None
    values = content.inputs if isinstance(content.inputs, list) else [content.inputs]
    if not 1 <= len(values) <= max_images:
        raise MalformedRequest(f"The request has {len(values)} images: send from 1 to {max_images}.")
    texts = [text for value in values if (text := body.text(value)) is not None]
    if len(texts) < len(values):
        raise MalformedRequest(_FORM)
    try:
        return [decode(text) for text in texts], content.parameters or Parameters()
    except ValueError:
        raise MalformedRequest("An image in JSON must be base64.") from None
