"""Reads a request to `/infer` in the Open Inference Protocol: its head, and the images in it or after it.

kserve/open-inference-protocol, `specification/protocol/inference_rest.md`; tensors in binary and classification as in
Triton's `docs/protocol/extension_binary_data.md` and `extension_classification.md`.
"""

import math
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictInt, StrictStr, ValidationError

from app.api.image_request import ImageRequest
from app.classifier import Image
from app.errors import MalformedRequest, is_meant
from app.images.json_body import bytes_in_numbers, image_of
from app.images.upload import Upload

HEADER = "Inference-Header-Content-Length"
IMAGES = "images"  # the one input
MAX_HEAD_BYTES = 2**20
LENGTH_BYTES = 4  # before each element of a BYTES tensor: little-endian

# MLServer's clients say how their side decodes a tensor, the model keeps no state, and no request goes before another.
WITHOUT_EFFECT = {"content_type", "headers", "priority", "sequence_id", "sequence_start", "sequence_end"}


def _of_effect(parameters: object) -> object:
    given = {} if parameters is None else parameters
    return {name: given[name] for name in given if name not in WITHOUT_EFFECT} if isinstance(given, dict) else given


AtLeast1 = Annotated[StrictInt, Field(ge=1, lt=2**63)]
OfEffect = BeforeValidator(_of_effect)


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class OfInput(Part):
    binary_data_size: Annotated[StrictInt, Field(ge=0)] = 0


class OfOutput(Part):
    classification: AtLeast1 | None = None
    binary_data: StrictBool | None = None


class OfRequest(Part):
    attention: StrictBool = False
    binary_data_output: StrictBool = False
    timeout: Annotated[StrictInt, Field(ge=0, lt=2**64)] = 0  # microseconds; 0: none


class InputTensor(Part):
    """Its values are in `data`, or they are `binary_data_size` bytes after the head."""

    name: Literal["images"]
    datatype: Literal["UINT8", "BYTES"]
    shape: list[AtLeast1] = Field(min_length=1, max_length=4)
    data: Any = None
    parameters: Annotated[OfInput, OfEffect] = OfInput()


class RequestedOutput(Part):
    name: StrictStr
    parameters: Annotated[OfOutput, OfEffect] = OfOutput()


class Head(Part):
    id: StrictStr | None = None
    model_name: StrictStr | None = None  # KServe's own client repeats the path so
    model_version: Literal["", "1"] | None = None  # as in gRPC
    parameters: Annotated[OfRequest, OfEffect] = OfRequest()
    inputs: list[InputTensor] = Field(min_length=1, max_length=1)
    outputs: Annotated[list[RequestedOutput], Field(fail_fast=True)] | None = None


KNOWN = {name for part in (OfInput, OfOutput, OfRequest, InputTensor, Head) for name in part.model_fields}


async def read_request(
    brought: ImageRequest, *, model: str, size: tuple[int, int], max_batch: int
) -> tuple[Head, Sequence[Image]]:
    """The head and the images. `size` is the height and width that the model takes.

    Raises MalformedRequest, and what reading a body raises.
    """
    body = await brought.received()
    said = brought.request.headers.get(HEADER, str(len(body)))
    length, most = int(said) if re.fullmatch("[0-9]{1,12}", said) else 0, min(len(body), MAX_HEAD_BYTES)
    if HEADER in brought.request.headers and not 0 < length <= most:
        raise MalformedRequest(f"The header {HEADER} has to be a number from 1 to {most} for this body.")
    head = _validated(await brought.read_json(body.part(0, length)))
    if head.model_name not in (None, model):
        raise MalformedRequest("The request names another model than its path.")
    (tensor,) = head.inputs
    shapes = {"UINT8": [[*size, 3]], "BYTES": [[], [1]]}[tensor.datatype]
    if tensor.shape[1:] not in shapes:
        wanted = f"[n, {size[0]}, {size[1]}, 3]" if tensor.datatype == "UINT8" else "[n] or [n, 1]"
        raise MalformedRequest(f"The shape of the input {IMAGES} has to be {wanted} for {tensor.datatype}.")
    if tensor.shape[0] > max_batch:
        raise MalformedRequest(f"The request has {tensor.shape[0]} images: send at most {max_batch}.")
    rest = body.part(length, len(body))
    if len(rest) != tensor.parameters.binary_data_size or (tensor.data is None) == (not len(rest)):
        raise MalformedRequest(
            f"The input {IMAGES} has to have either data, or binary_data_size and as many bytes after the head, whose "
            f"own size the header {HEADER} says."
        )
    if tensor.datatype == "UINT8":
        return head, _pixels(tensor, rest)
    return head, _elements(tensor, rest) if tensor.data is None else _in_base64(tensor)


def _validated(document: object) -> Head:
    try:
        return Head.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part)[:64] for part in first["loc"]) or "JSON"
        meant = is_meant(str(first["loc"][-1]), KNOWN) if first["type"] == "extra_forbidden" else ""
        raise MalformedRequest(
            f"The request is not what the protocol describes: {place}: {first['msg']}{meant or '.'}"
        ) from None


def _pixels(tensor: InputTensor, rest: Upload) -> list[Image]:
    """Each image is a copy, because a view that the store keeps of one would keep all others."""
    size, shape = math.prod(tensor.shape), tuple(tensor.shape)
    if tensor.data is None:
        if len(rest) != size:
            raise MalformedRequest(f"The shape of the input {IMAGES} has {size} bytes, and {len(rest)} are there.")
        each = size // shape[0]
        return [np.frombuffer(rest.read(at, each), np.uint8).reshape(shape[1:]) for at in range(0, size, each)]
    numbers = bytes_in_numbers(tensor.data) if isinstance(tensor.data, list) else tensor.data
    if not isinstance(numbers, np.ndarray) or numbers.shape not in ((size,), shape):
        raise MalformedRequest(f"The data of {IMAGES} has to be {size} whole numbers from 0 to 255, flat or nested.")
    return [image.copy() for image in numbers.reshape(shape)]


def _in_base64(tensor: InputTensor) -> list[Image]:
    """JSON has no bytes. MLServer calls this content type `base64`, and its runtime for transformers `pillow_image`."""
    values = tensor.data if isinstance(tensor.data, list) else []
    if len(tensor.shape) == 2:  # flat or nested, as numbers
        values = [value for row in values for value in (row if isinstance(row, list) else [row])]
    if len(values) != tensor.shape[0] or not all(isinstance(value, str | Upload) for value in values):
        raise MalformedRequest(f"The data of {IMAGES} has to be {tensor.shape[0]} strings of base64.")
    return [*map(image_of, values)]


def _elements(tensor: InputTensor, rest: Upload) -> list[Image]:
    uploads: list[Image] = []
    at = 0
    for _ in range(tensor.shape[0]):
        start = at + LENGTH_BYTES
        at = start + int.from_bytes(rest.read(at, LENGTH_BYTES), "little")
        uploads.append(rest.part(start, at - start))
    if at != len(rest):
        raise MalformedRequest(f"The elements of {IMAGES} say that they have {at} bytes, and {len(rest)} are there.")
    return uploads
