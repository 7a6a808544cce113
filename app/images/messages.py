"""What a worker answers.

A worker is not trusted, because it has read hostile bytes. What it sends is read as plain numbers and bytes of an
expected shape, never as pickled objects.
"""

import json
import struct
from typing import Any

import numpy as np

from app.errors import MalformedRequest, UnsupportedType, UnusableImage
from app.images.headers import IMAGES
from app.images.preprocess import Box, PreprocessedImage
from app.images.upload import Buffer

Refusal = UnsupportedType | UnusableImage | MalformedRequest
Answer = PreprocessedImage | Refusal

MAX_FACTS_BYTES = 2**14  # of an answer, beside pixels and other large values
_LENGTH = struct.Struct("!I")  # of the facts, which are JSON; they and the large values follow
_ERRORS = {error.kind: error for error in (UnsupportedType, UnusableImage, MalformedRequest)}  # no others are raised


class GarbledAnswer(Exception):
    """A worker sent something that `pack` does not write."""


def pack(facts: object, *values: Buffer) -> tuple[Buffer, ...]:
    """The parts of the bytes, in their order. Raises ValueError for text with half of a surrogate pair."""
    text = json.dumps(facts, ensure_ascii=False).encode()
    return _LENGTH.pack(len(text)), text, *values


def unpack(answer: Buffer) -> tuple[Any, int]:
    """The facts, and where the values begin.

    Raises the refusal that the facts are, and GarbledAnswer, ValueError, KeyError, TypeError, RecursionError or
    struct.error for what `pack` does not write.
    """
    (length,) = _LENGTH.unpack_from(answer)
    start = _LENGTH.size + length
    if length > MAX_FACTS_BYTES:
        raise GarbledAnswer
    facts = json.loads(bytes(answer[_LENGTH.size : start]))
    if isinstance(facts, dict) and "error" in facts:
        raise _ERRORS[facts["error"]](str(facts["detail"]))
    return facts, start


def pack_answer(answer: Answer) -> tuple[Buffer, ...]:
    """As `pack`."""
    if isinstance(answer, PreprocessedImage):
        facts = {"size": answer.size, "box": answer.box, "format": answer.format}
        return pack(facts, np.ascontiguousarray(answer.pixels).data, answer.thumbnail)
    return pack({"error": answer.kind, "detail": answer.detail})


def unpack_answer(answer: Buffer, *, shape: tuple[int, int]) -> PreprocessedImage:
    """`shape` is the height and width of the network's input. Nothing that is returned keeps `answer` in memory.

    Raises a refusal or GarbledAnswer.
    """
    try:
        facts, start = unpack(answer)
        end = start + shape[0] * shape[1] * 3
        width, height = map(int, facts["size"])
        thumbnail = bytes(memoryview(answer)[end:])
        box = Box(*map(float, facts["box"]))
        inside = 0 <= box.left < box.right <= width and 0 <= box.top < box.bottom <= height
        if not inside or not (IMAGES["JPEG"].match(thumbnail) or not thumbnail):
            raise ValueError("no image has such facts")
        return PreprocessedImage(
            pixels=np.frombuffer(answer, np.uint8, end - start, start).reshape(*shape, 3).copy(),
            size=(width, height),
            box=box,
            format=str(facts["format"]),
            thumbnail=thumbnail,
        )
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, struct.error) as error:
        raise GarbledAnswer from error
