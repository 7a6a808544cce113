"""What a client asks of `/infer` in the Open Inference Protocol: a head in JSON, and tensors in it or after it.

kserve/open-inference-protocol, `specification/protocol/inference_rest.md`; tensors in binary and classification as in
Triton's `docs/protocol/extension_binary_data.md` and `extension_classification.md`. A shape is a claim: nothing is
reserved for it, and a tensor grows by what arrives.
"""

import base64
import binascii
import math
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError

from app.errors import MalformedRequest
from app.images.upload import Upload
from app.inference.contract import Pixels

HEADER = "Inference-Header-Content-Length"
IMAGES = "images"  # the one input
MAX_HEAD_BYTES = 2**20
MAX_JSON_BYTES = 2**23  # of a request whose tensors are in JSON too
LENGTH_BYTES = 4  # before each element of a BYTES tensor

Parameters = dict[StrictStr, Any]


class Asked(BaseModel):
    """An output that is wanted."""

    name: StrictStr
    parameters: Parameters = Field(default_factory=dict)

    @property
    def binary(self) -> bool | None:
        return flag(self.parameters, "binary_data")

    @property
    def classification(self) -> int:
        """How many classes to name; 0 for the tensor itself."""
        return count(self.parameters, "classification")


class Tensor(BaseModel):
    """An input. Its numbers are in `data`, or they are `binary_data_size` bytes after the head."""

    name: StrictStr
    datatype: StrictStr
    shape: list[StrictInt] = Field(min_length=1, max_length=8)
    parameters: Parameters = Field(default_factory=dict)
    data: list[Any] | None = None


class Head(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: StrictStr = ""
    inputs: list[Tensor] = Field(min_length=1)
    outputs: list[Asked] | None = None
    parameters: Parameters = Field(default_factory=dict)


class Bytes:
    """The bytes of a body in the order in which they arrive."""

    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self._pieces = pieces
        self._piece = memoryview(b"")

    async def take(self, size: int) -> Upload:
        """The next `size` bytes, or fewer if the body ends before."""
        taken = Upload()
        while len(taken) < size and await self._more():
            part = self._piece[: size - len(taken)]
            self._piece = self._piece[len(part) :]
            taken.add(part)
        return taken

    async def ended(self) -> bool:
        return not await self._more()

    async def _more(self) -> bool:
        while not self._piece:
            try:
                self._piece = memoryview(await anext(self._pieces))
            except StopAsyncIteration:
                return False
        return True


class Expected(BaseModel):
    """What the model takes; it stands in the messages."""

    name: str
    size: tuple[int, int]  # height, width
    max_batch: int


async def read_request(
    pieces: AsyncIterator[bytes], *, head_length: str | None, expected: Expected
) -> tuple[Head, list[Upload] | list[Pixels]]:
    """The head, and the images: uploads to decode, or pixels (height, width, 3) of the network's input.

    `head_length` is the header Inference-Header-Content-Length. Raises MalformedRequest, ClientDisconnect, and what the
    door raises.
    """
    body = Bytes(pieces)
    head, rest = await _head(body, head_length)
    _refuse_shared_memory(head)
    tensor = _images(head, expected)
    if tensor.data is not None:
        if "binary_data_size" in tensor.parameters:
            raise MalformedRequest(f"The input {IMAGES!r} has data in JSON and in binary.")
        images = _from_json(tensor, expected)
    else:
        if not rest:
            raise MalformedRequest(f"The input {IMAGES!r} has no data: the header {HEADER} is missing.")
        images = await _from_bytes(body, tensor, expected)
    if not await body.ended():
        raise MalformedRequest(f"unexpected additional input data for model {expected.name!r}")
    return head, images


async def _head(body: Bytes, head_length: str | None) -> tuple[Head, bool]:
    """And whether tensors in binary may follow it."""
    if head_length is None:
        upload = await body.take(MAX_JSON_BYTES)
        if not await body.ended():
            raise MalformedRequest(f"JSON of more than {MAX_JSON_BYTES:,} bytes is not read: send tensors in binary.")
    else:
        if not head_length.isascii() or not head_length.isdecimal() or not 0 < int(head_length) <= MAX_HEAD_BYTES:
            raise MalformedRequest(
                f"inference header size should be in range (1, {MAX_HEAD_BYTES}), got: {head_length[:20]}"
            )
        upload = await body.take(int(head_length))
        if len(upload) < int(head_length):
            raise _bad_length(len(upload), head_length)
    try:
        head = Head.model_validate_json(b"".join(upload.parts()))
    except ValidationError as error:
        found = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, found["loc"]))
        raise MalformedRequest(
            f"The request is not what the protocol describes: {place or 'JSON'}: {found['msg']}."
        ) from None
    return head, head_length is not None


def _bad_length(most: int, told: str) -> MalformedRequest:
    return MalformedRequest(f"inference header size should be in range (1, {most}), got: {told}")


def _images(head: Head, expected: Expected) -> Tensor:
    """The one input, with the shape and type that the model takes."""
    for tensor in head.inputs:
        if tensor.name != IMAGES:
            raise MalformedRequest(f"unexpected inference input {tensor.name!r} for model {expected.name!r}")
    if len(head.inputs) > 1:
        raise MalformedRequest(f"The input {IMAGES!r} is there {len(head.inputs)} times.")
    (tensor,) = head.inputs
    height, width = expected.size
    if tensor.datatype not in ("UINT8", "BYTES"):
        raise MalformedRequest(
            f"inference input {IMAGES!r} data-type is {tensor.datatype!r}, but model {expected.name!r} expects "
            "'UINT8', or 'BYTES' for encoded images"
        )
    shapes = {"UINT8": [[height, width, 3]], "BYTES": [[], [1]]}[tensor.datatype]
    if tensor.shape[0] < 1 or tensor.shape[1:] not in shapes:
        wanted = f"[-1,{height},{width},3]" if tensor.datatype == "UINT8" else "[-1]"
        found = str(tensor.shape).replace(" ", "")
        raise MalformedRequest(
            f"unexpected shape for input {IMAGES!r} for model {expected.name!r}. Expected {wanted}, got {found}"
        )
    if tensor.shape[0] > expected.max_batch:
        raise MalformedRequest(f"inference request batch-size must be <= {expected.max_batch} for {expected.name!r}")
    return tensor


def _from_json(tensor: Tensor, expected: Expected) -> list[Upload] | list[Pixels]:
    if tensor.datatype == "BYTES":
        return _from_base64(tensor)
    try:
        numbers = np.asarray(tensor.data)
    except ValueError:  # ragged
        numbers = np.empty(0)
    right = numbers.dtype.kind in "iu" and numbers.size == math.prod(tensor.shape)
    if not right or numbers.min() < 0 or numbers.max() > np.iinfo(np.uint8).max:
        raise MalformedRequest(
            f"The data of {IMAGES!r} has to be {math.prod(tensor.shape)} whole numbers from 0 to 255, flat or nested."
        )
    return list(numbers.astype(np.uint8).reshape(tensor.shape))


def _from_base64(tensor: Tensor) -> list[Upload]:
    """JSON has no bytes. `content_type` of `base64` is MLServer's convention."""
    if tensor.parameters.get("content_type") != "base64":
        raise MalformedRequest(
            'Encoded images go in binary, after the head. In JSON they are base64, and the input has "parameters": '
            '{"content_type": "base64"}.'
        )
    data = tensor.data or []
    if len(data) != tensor.shape[0] or not all(isinstance(text, str) for text in data):
        raise MalformedRequest(f"The data of {IMAGES!r} has to be {tensor.shape[0]} strings.")
    try:
        return [Upload(base64.b64decode(text, validate=True)) for text in data]
    except (binascii.Error, ValueError):
        raise MalformedRequest(f"The data of {IMAGES!r} is not base64.") from None


async def _from_bytes(body: Bytes, tensor: Tensor, expected: Expected) -> list[Upload] | list[Pixels]:
    size = count(tensor.parameters, "binary_data_size")
    if not size:
        raise MalformedRequest(f"The input {IMAGES!r} has neither data nor binary_data_size.")
    if tensor.datatype == "BYTES":
        return await _elements(body, tensor.shape[0], size)
    if size != math.prod(tensor.shape):
        raise MalformedRequest(
            f"unexpected size for input {IMAGES!r}: its shape has {math.prod(tensor.shape)} bytes, binary_data_size is "
            f"{size}"
        )
    height, width = expected.size
    images: list[Pixels] = []
    for place in range(tensor.shape[0]):
        upload = await body.take(height * width * 3)
        if len(upload) < height * width * 3:
            missing = size - place * height * width * 3 - len(upload)
            raise MalformedRequest(
                f"unexpected size for input {IMAGES!r}, expecting {missing} additional bytes for model "
                f"{expected.name!r}"
            )
        images.append(np.frombuffer(b"".join(upload.parts()), np.uint8).reshape(height, width, 3))
    return images


async def _elements(body: Bytes, number: int, size: int) -> list[Upload]:
    """Each element is its length in 4 bytes, little-endian, and as many bytes."""
    uploads = []
    for _ in range(number):
        told = await body.take(min(LENGTH_BYTES, size))
        length = int.from_bytes(b"".join(told.parts()), "little")
        size -= len(told)
        upload = await body.take(min(length, size))
        if len(told) < LENGTH_BYTES or len(upload) < length:
            raise MalformedRequest(
                f"incomplete string data for inference input {IMAGES!r}, expecting string of length {length} but only "
                f"{len(upload)} bytes available"
            )
        size -= length
        uploads.append(upload)
    if size:
        raise MalformedRequest(f"unexpected number of string elements {number + 1} for inference input {IMAGES!r}")
    return uploads


def _refuse_shared_memory(head: Head) -> None:
    for part in (*head.inputs, *(head.outputs or ())):
        if any(name.startswith("shared_memory") for name in part.parameters):
            raise MalformedRequest("Shared memory is not supported: send the tensor with the request.")


def flag(parameters: Parameters, name: str) -> bool | None:
    """None where it is not there. Raises MalformedRequest."""
    value = parameters.get(name)
    if value is not None and not isinstance(value, bool):
        raise MalformedRequest(f"The parameter {name} has to be true or false.")
    return value


def count(parameters: Parameters, name: str) -> int:
    """0 where it is not there. Raises MalformedRequest."""
    value = parameters.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise MalformedRequest(f"The parameter {name} has to be a whole number that is not negative.")
    return value
