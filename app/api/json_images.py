"""Images in JSON: base64 under `inputs`, as Hugging Face's clients send it, or under `image` or `images`."""

import base64
import re
from functools import partial
from typing import Annotated, Any, Literal, get_args

from fastapi import Request
from pydantic import AliasChoices, BaseModel, Field, StrictStr, ValidationError

from app.api.parsing import parsed
from app.errors import InvalidParameter, MalformedRequest
from app.images.upload import Upload

Function = Literal["softmax", "sigmoid", "none"]  # what makes a score of a logit
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
}
_DATA_URL = re.compile(r"data:[\w/+.-]*;base64,")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class Parameters(BaseModel):
    """Those of transformers' pipeline for image classification. Others are ignored."""

    top_k: Annotated[int, Field(ge=1)] | None = None
    function_to_apply: Function | None = None


class JsonImages(BaseModel):
    """What a body in JSON says."""

    inputs: StrictStr | list[StrictStr] = Field(validation_alias=AliasChoices("inputs", "image", "images"))
    parameters: Parameters = Field(default_factory=Parameters)

    def uploads(self, max_images: int) -> list[Upload]:
        """Raises MalformedRequest for what is not base64, such as an address."""
        texts = [self.inputs] if isinstance(self.inputs, str) else self.inputs
        if not 1 <= len(texts) <= max_images:
            raise MalformedRequest(f"The request has {len(texts)} images: send from 1 to {max_images}.")
        return [_decoded(text) for text in texts]


async def read_json(request: Request, *, max_images: int) -> tuple[list[Upload], Parameters]:
    """The images of a body in JSON, and what it asks of them.

    Raises MalformedRequest, InvalidParameter, ClientDisconnect, and what the door raises.
    """
    return await parsed(partial(_read, max_images=max_images), await request.body())


def _read(text: bytes, *, max_images: int) -> tuple[list[Upload], Parameters]:
    try:
        found = JsonImages.model_validate_json(text)
    except ValidationError as error:
        wrong = error.errors(include_input=False, include_url=False)[0]
        if wrong["loc"][:1] == ("parameters",) and len(wrong["loc"]) > 1:
            raise InvalidParameter(f"{wrong['loc'][1]}: {wrong['msg']}.") from None
        raise MalformedRequest(
            'The JSON has to be {"inputs": "base64 of an image file"}, with "parameters" if they are needed.'
        ) from None
    return found.uploads(max_images), found.parameters


def _decoded(text: str) -> Upload:
    if _ADDRESS.match(text):
        raise MalformedRequest("This is an address, and the service fetches nothing: send the image itself in base64.")
    prefix = _DATA_URL.match(text)
    encoded = re.sub(r"\s", "", text[prefix.end() if prefix else 0 :])
    try:
        return Upload(base64.b64decode(encoded, validate=True))
    except ValueError:
        raise MalformedRequest("An image in JSON has to be base64.") from None
