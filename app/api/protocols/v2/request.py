"""Reads a request to `/infer` in the Open Inference Protocol: its head, and the images in it or after it.

A shape is a claim: nothing is reserved for it, and a tensor grows by what arrives.
"""

import json
import math
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from app.api.body.base64_image import decode
from app.api.body.json_body import JsonBody
from app.api.body.json_reader import JsonReader
from app.api.protocols.v2.head import Head, InputTensor, count, read_head
from app.api.protocols.v2.numbers import read_numbers
from app.classifier import Image
from app.errors import MalformedRequest
from app.images.upload import Upload
from app.inference.engine import Pixels

HEADER = "Inference-Header-Content-Length"
IMAGES = "images"  # the one input
MAX_HEAD_BYTES = 2**20
MAX_JSON_BYTES = 2**23  # of a request whose tensors are in JSON too
LENGTH_BYTES = 4  # before each element of a BYTES tensor


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What the model takes; messages say it."""

    name: str
    size: tuple[int, int]  # height, width
    max_batch: int


class BodyReader:
    """The bytes of a body in the order in which they arrive."""

    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self._pieces = pieces
        self._piece = memoryview(b"")

    async def take(self, size: int) -> Upload:
        """The next `size` bytes, or fewer if the body ends before."""
        taken = Upload()
        while len(taken) < size and await self.more():
            part = self._piece[: size - len(taken)]
            self._piece = self._piece[len(part) :]
            taken.add(part)
        return taken

    async def more(self) -> bool:
        while not self._piece:
            try:
                self._piece = memoryview(await anext(self._pieces))
            except StopAsyncIteration:
                return False
        return True


async def read_request(
    pieces: AsyncIterator[bytes],
    reader: JsonReader,
    *,
    head_length: str | None,
    expected: Expected,
    deadline: float,
) -> tuple[Head, Sequence[Image]]:
    """The head without the data of its images, and the images.

    `head_length` is the header Inference-Header-Content-Length, `deadline` is in seconds of time.monotonic. Raises
    MalformedRequest, ClientDisconnect, and what admission and the door raise.
    """
    body = BodyReader(pieces)
    text = await _json(body, head_length)
    head, images = await reader.read(partial(_read, expected=expected), text, deadline=deadline)
    if images is None:
        if head_length is None:
            raise MalformedRequest(f"The input {IMAGES!r} has no data: the header {HEADER} is missing.")
        images = await _from_bytes(body, head.inputs[0], expected)
    if await body.more():
        raise MalformedRequest(f"unexpected additional input data for model {expected.name!r}")
    return head, images


async def _json(body: BodyReader, head_length: str | None) -> bytes:
    """The whole body, or as much of it as the header says."""
    if head_length is None:
        upload = await body.take(MAX_JSON_BYTES)
        if await body.more():
            raise MalformedRequest(f"JSON of more than {MAX_JSON_BYTES:,} bytes is not read: send tensors in binary.")
        return _joined(upload)
    length, most = int(head_length) if re.fullmatch("[0-9]{1,9}", head_length) else 0, MAX_HEAD_BYTES
    if 0 < length <= most:
        upload = await body.take(length)
        if len(upload) == length:
            return _joined(upload)
        most = len(upload)
    raise MalformedRequest(f"inference header size should be in range (1, {most}), got: {head_length[:20]}")


def _read(text: bytes | bytearray, *, expected: Expected) -> tuple[Head, Sequence[Image] | None]:
    """The head, and the images where they are in it."""
    try:
        body = JsonBody(text)
    except ValueError as error:
        raise MalformedRequest(f"The request is not what the protocol describes: the JSON has {error}.") from None
    head = read_head(body.rest)
    if head.model_name not in (None, expected.name):
        raise MalformedRequest(f"The request names the model {head.model_name!r}, and its path {expected.name!r}.")
    tensor = _input_tensor(head, expected)
    if tensor.data is None:
        return head, None
    if "binary_data_size" in tensor.parameters:
        raise MalformedRequest(f"The input {IMAGES!r} has data in JSON and in binary.")
    images = _from_base64(tensor, body) if tensor.datatype == "BYTES" else _from_numbers(tensor, body)
    tensor.data = None  # it would take its memory until the answer
    return head, images


def _input_tensor(head: Head, expected: Expected) -> InputTensor:
    """The one input, with the shape and type that the model takes."""
    for tensor in head.inputs:
        if tensor.name != IMAGES:
            raise MalformedRequest(f"unexpected inference input {tensor.name!r} for model {expected.name!r}")
    if len(head.inputs) > 1:
        raise MalformedRequest(f"The request has the input {IMAGES!r} {len(head.inputs)} times.")
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
        shape = str(tensor.shape).replace(" ", "")
        raise MalformedRequest(
            f"unexpected shape for input {IMAGES!r} for model {expected.name!r}. Expected {wanted}, got {shape}"
        )
    if tensor.shape[0] > expected.max_batch:
        raise MalformedRequest(f"inference request batch-size must be <= {expected.max_batch} for {expected.name!r}")
    return tensor


def _from_numbers(tensor: InputTensor, body: JsonBody) -> list[Pixels]:
    place: object = tensor.data
    depth = 0
    while isinstance(place, list) and len(place) == 1:
        place, depth = place[0], depth + 1
    if numbers := body.numbers(place):
        text = b"".join((b"[" * depth, numbers, b"]" * depth))
    else:  # few enough to have stayed in the rest
        text = json.dumps(tensor.data).encode()
    try:
        # Copies, because a view that the store keeps of one image would keep all others.
        return [image.copy() for image in read_numbers(text, tuple(tensor.shape))]
    except ValueError:
        raise MalformedRequest(
            f"The data of {IMAGES!r} must be {math.prod(tensor.shape)} whole numbers from 0 to 255, flat or nested."
        ) from None


def _from_base64(tensor: InputTensor, body: JsonBody) -> list[Upload]:
    """JSON has no bytes. `content_type` is MLServer's, `pillow_image` that of its runtime for transformers."""
    if tensor.parameters.get("content_type") not in ("base64", "pillow_image"):
        raise MalformedRequest(
            'Send encoded images in binary, after the head; or in JSON as base64, where the input has "parameters": '
            '{"content_type": "base64"}.'
        )
    data = tensor.data or []
    if len(tensor.shape) == 2:  # flat or nested, as numbers
        data = [value for row in data for value in (row if isinstance(row, list) else [row])]
    texts = [text for value in data if (text := body.text(value)) is not None]
    if not len(texts) == len(data) == tensor.shape[0]:
        raise MalformedRequest(f"The data of {IMAGES!r} must be {tensor.shape[0]} strings.")
    try:
        return [decode(text) for text in texts]
    except ValueError:
        raise MalformedRequest(f"The data of {IMAGES!r} is not base64.") from None


async def _from_bytes(body: BodyReader, tensor: InputTensor, expected: Expected) -> Sequence[Image]:
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
        images.append(np.frombuffer(_joined(upload), np.uint8).reshape(height, width, 3))
    return images


async def _elements(body: BodyReader, number: int, size: int) -> list[Upload]:
    """Each element is its length in 4 bytes, little-endian, and as many bytes."""
    uploads = []
    for _ in range(number):
        prefix = await body.take(min(LENGTH_BYTES, size))
        length = int.from_bytes(_joined(prefix), "little")
        size -= len(prefix)
        upload = await body.take(min(length, size))
        if len(prefix) < LENGTH_BYTES or len(upload) < length:
            raise MalformedRequest(
                f"incomplete string data for inference input {IMAGES!r}, expecting string of length {length} but only "
                f"{len(upload)} bytes available"
            )
        size -= length
        uploads.append(upload)
    if size:
        raise MalformedRequest(f"unexpected number of string elements {number + 1} for inference input {IMAGES!r}")
    return uploads


def _joined(upload: Upload) -> bytes:
    return b"".join(upload.parts())
