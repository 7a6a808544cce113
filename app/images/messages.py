"""What a worker answers.

A worker is not trusted, because it has decoded hostile bytes. `unpack_answer` reads what it sends as plain numbers and
bytes of an expected shape, never as pickled objects.
"""

import json
import struct
from typing import Any

import numpy as np

from app.errors import UnsupportedType, UnusableImage
from app.images.kinds import IMAGES
from app.images.preprocess import Box, Prepared

Answer = Prepared | UnsupportedType | UnusableImage
Buffer = bytes | bytearray | memoryview

_ANSWER = struct.Struct("!I")  # length of the JSON; the JSON, the pixels and the thumbnail follow
_ERRORS = {error.kind: error for error in (UnsupportedType, UnusableImage)}  # no others are raised for a worker


class GarbledAnswer(Exception):
    """A worker sent something that `pack_answer` does not write."""


def pack_answer(answer: Answer) -> tuple[Buffer, ...]:
    """The parts of the bytes, in their order."""
    blobs: tuple[Buffer, ...] = ()
    if isinstance(answer, Prepared):
        facts: dict[str, object] = {"size": answer.size, "box": answer.box, "format": answer.format}
        blobs = np.ascontiguousarray(answer.pixels).data, answer.thumbnail
    else:
        facts = {"error": answer.kind, "detail": answer.detail}
    text = json.dumps(facts).encode()
    return _ANSWER.pack(len(text)), text, *blobs


def unpack_answer(answer: Buffer, *, shape: tuple[int, int]) -> Prepared:
    """`shape` is the height and width of the network's input. Nothing that is returned keeps `answer` in memory.

    Raises UnsupportedType, UnusableImage, or GarbledAnswer.
    """
    try:
        (length,) = _ANSWER.unpack_from(answer)
        start = _ANSWER.size + length
        facts: Any = json.loads(bytes(answer[_ANSWER.size : start]))
        if "error" in facts:
            raise _ERRORS[facts["error"]](str(facts["detail"]))
        end = start + shape[0] * shape[1] * 3
        width, height = map(int, facts["size"])
        thumbnail = bytes(memoryview(answer)[end:])
        box = Box(*map(float, facts["box"]))
        inside = 0 <= box.left < box.right <= width and 0 <= box.top < box.bottom <= height
        if not inside or not (IMAGES["JPEG"].match(thumbnail) or not thumbnail):
            raise ValueError("no image has such facts")
        return Prepared(
            pixels=np.frombuffer(answer, np.uint8, end - start, start).reshape(*shape, 3).copy(),
            size=(width, height),
            box=box,
            format=str(facts["format"]),
            thumbnail=thumbnail,
        )
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, struct.error) as error:
        raise GarbledAnswer from error
