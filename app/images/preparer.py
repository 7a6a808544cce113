"""From the bytes of an upload to the network's input, and to the thumbnail for maps. Runs in a worker process.

A worker is not trusted, because it has decoded hostile bytes. `unpack_answer` reads what it sends as plain numbers and
bytes of an expected shape, never as pickled objects.
"""

import json
import struct
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from app.errors import UnsupportedType, UnusableImage
from app.images.colors import upright_rgb
from app.images.decode import Limits, opened
from app.images.preprocess import Box, ImageSpec, preprocess

THUMBNAIL_QUALITY = 85  # JPEG
_REQUEST = struct.Struct("!Q?")  # most pixels, and whether a thumbnail is wanted
_ANSWER = struct.Struct("!I")  # length of the JSON; the JSON, the pixels and the thumbnail follow
_ERRORS = {error.kind: error for error in (UnsupportedType, UnusableImage)}  # no others are raised for a worker


@dataclass(frozen=True, kw_only=True)
class Prepared:
    pixels: npt.NDArray[np.uint8]  # (height, width, 3) of the network's input
    size: tuple[int, int]  # width, height of the upright image
    box: Box  # the part of it that the network sees
    format: str
    thumbnail: bytes | None  # JPEG of the upright image, scaled down


@dataclass(frozen=True)
class Larger:
    """The image has more pixels than the request allowed, and was not decoded."""

    pixels: int


class GarbledAnswer(Exception):
    """A worker sent something that `pack_answer` does not write."""


class Preparer:
    """What a worker does: it is called with a packed request and an upload, and returns a packed answer."""

    def __init__(self, *, limits: Limits, spec: ImageSpec, thumbnail_px: int) -> None:
        """`thumbnail_px` is the longest side of a thumbnail."""
        self._limits = limits
        self._spec = spec
        self._thumbnail_px = thumbnail_px

    def __call__(self, request: bytes, data: bytes) -> bytes:
        max_pixels, thumbnail = _REQUEST.unpack(request)
        try:
            return pack_answer(self.prepare(data, thumbnail=thumbnail, max_pixels=max_pixels))
        except (UnsupportedType, UnusableImage) as error:
            return pack_answer(error)
        except MemoryError:
            return pack_answer(UnusableImage("Decoding this image takes too much memory."))

    def prepare(self, data: bytes, *, thumbnail: bool, max_pixels: int) -> Prepared | Larger:
        """Raises UnsupportedType or UnusableImage."""
        with opened(data, self._limits) as (image, name):
            if image.width * image.height > max_pixels:
                return Larger(image.width * image.height)
            upright = upright_rgb(image)
        pixels, box = preprocess(upright, self._spec)
        return Prepared(
            pixels=pixels,
            size=upright.size,
            box=box,
            format=name,
            thumbnail=thumbnail_of(upright, self._thumbnail_px) if thumbnail else None,
        )


def thumbnail_of(image: Image.Image, longest: int) -> bytes:
    """A JPEG whose sides are at most `longest` pixels."""
    shrink = longest / max(image.size)
    if shrink < 1:
        width, height = (max(round(side * shrink), 1) for side in image.size)
        image = image.resize((width, height), reducing_gap=2.0)
    out = BytesIO()
    image.save(out, "JPEG", quality=THUMBNAIL_QUALITY)
    return out.getvalue()


def pack_request(*, thumbnail: bool, max_pixels: int) -> bytes:
    """What goes before an upload. An image of more than `max_pixels` is not decoded; the answer is then Larger."""
    return _REQUEST.pack(max_pixels, thumbnail)


def pack_answer(answer: Prepared | Larger | UnsupportedType | UnusableImage) -> bytes:
    if isinstance(answer, Larger):
        return _message({"larger": answer.pixels})
    if not isinstance(answer, Prepared):
        return _message({"error": answer.kind, "detail": answer.detail})
    facts = {
        "size": answer.size,
        "box": answer.box,
        "format": answer.format,
        "thumbnail": answer.thumbnail is not None,
    }
    return _message(facts, answer.pixels.tobytes(), answer.thumbnail or b"")


def unpack_answer(answer: bytearray, *, shape: tuple[int, int]) -> Prepared | Larger:
    """`shape` is the height and width of the network's input. Nothing that is returned keeps `answer` in memory.

    Raises UnsupportedType, UnusableImage, or GarbledAnswer.
    """
    try:
        facts, start = _facts(answer)
        if "error" in facts:
            raise _ERRORS[facts["error"]](str(facts["detail"]))
        if "larger" in facts:
            return Larger(int(facts["larger"]))
        end = start + shape[0] * shape[1] * 3
        width, height = map(int, facts["size"])
        return Prepared(
            pixels=np.frombuffer(answer, np.uint8, end - start, start).reshape(*shape, 3).copy(),
            size=(width, height),
            box=Box(*map(float, facts["box"])),
            format=str(facts["format"]),
            thumbnail=bytes(answer[end:]) if facts["thumbnail"] else None,
        )
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, struct.error) as error:
        raise GarbledAnswer from error


def _message(facts: dict[str, object], *blobs: bytes) -> bytes:
    text = json.dumps(facts).encode()
    return b"".join((_ANSWER.pack(len(text)), text, *blobs))


def _facts(answer: bytearray) -> tuple[Any, int]:
    """The JSON of an answer, and where the bytes after it begin."""
    (length,) = _ANSWER.unpack_from(answer)
    end = _ANSWER.size + length
    return json.loads(answer[_ANSWER.size : end]), end
