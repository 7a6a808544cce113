"""Images in JSON: base64 under `inputs`, as Hugging Face's clients send it, or under `image` or `images`."""

from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, InstanceOf, StrictStr, ValidationError

from app.api.parameters import Given, as_text
from app.errors import MalformedRequest
from app.images.json_body import image_of
from app.images.upload import Upload

_NAMES = ("inputs", "image", "images")  # of the images
_FORM = 'The body must be JSON such as {"inputs": "base64 of an image file"}; "parameters" are optional.'


Value = StrictStr | InstanceOf[Upload]


class Hosting(BaseModel):
    """`options` of Hugging Face's own hosting: of its cache and its waiting. They change no label."""

    model_config = ConfigDict(extra="forbid")

    use_cache: Any = None
    use_gpu: Any = None
    wait_for_model: Any = None


class JsonImages(BaseModel):
    """Members beside these are parameters."""

    model_config = ConfigDict(extra="allow")

    inputs: Value | Annotated[list[Value], Field(fail_fast=True)] | None = Field(
        None, validation_alias=AliasChoices(*_NAMES)
    )
    parameters: dict[str, Any] | None = None
    options: Hosting | None = None


def images_in(document: object, *, max_images: int, instead: str | None = None) -> tuple[list[Upload], Given]:
    """Images and parameters in a document as `Preprocessor.read_json` gives it, of which it has images or the parameter
    `instead`. Raises MalformedRequest.
    """
    try:
        content = JsonImages.model_validate(document)
    except ValidationError:
        raise MalformedRequest(_FORM) from None
    extra = content.model_extra or {}
    if content.inputs is None and instead not in extra:
        raise MalformedRequest(_FORM)
    values = content.inputs if isinstance(content.inputs, list) else [] if content.inputs is None else [content.inputs]
    if content.inputs is not None and not 1 <= len(values) <= max_images:
        raise MalformedRequest(f"The request has {len(values)} images: send from 1 to {max_images}.")
    if any(name in extra for name in _NAMES):
        raise MalformedRequest("The JSON has images under more than one name.")
    members = [*extra.items(), *(content.parameters or {}).items()]
    return [*map(image_of, values)], [(name, as_text(value)) for name, value in members if value is not None]
