"""From the bytes of an upload to what the network gets and what maps are drawn on. Runs in a decoder's process.

A decoder is not trusted: it has worked on hostile bytes. What comes back is read by `unpack` as plain numbers and
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

from app.images.colors import upright_rgb
from app.images.decode import Decoder, NotAccepted, Refused, Unusable
from app.images.preprocess import Box, Framing, preprocess

THUMBNAIL_QUALITY = 85  # JPEG
_REQUEST = struct.Struct("!Q?")  # most pixels, whether a thumbnail is wanted; then the upload
_ANSWER = struct.Struct("!I")  # length of the JSON; then the JSON, the pixels and the thumbnail
_REFUSALS = {kind.__name__: kind for kind in (NotAccepted, Unusable)}


@dataclass(frozen=True, kw_only=True)
class Prepared:
    pixels: npt.NDArray[np.uint8]  # (height, width, 3) of the network's input
    size: tuple[int, int]  # width, height of the upright picture
    box: Box  # what the network sees of it
    format: str
    thumbnail: bytes | None  # JPEG of the upright picture, scaled down


@dataclass(frozen=True)
class Larger:
    """The picture has more pixels than the request allowed; none has been decoded."""

    pixels: int


class GarbledAnswer(Exception):
    """What came back from a decoder's process is not what `Preparer` answers."""


class Preparer:
    """Called with a request of `pack`, answers what `unpack` reads; `prepare` is what happens between."""

    def __init__(self, *, decoder: Decoder, framing: Framing, thumbnail_px: int) -> None:
        self._decoder = decoder
        self._framing = framing
        self._thumbnail_px = thumbnail_px

    def __call__(self, request: bytearray) -> bytes:
        max_pixels, thumbnail = _REQUEST.unpack_from(request)
        try:
            data = bytes(memoryview(request)[_REQUEST.size :])
            return _packed(self.prepare(data, thumbnail=thumbnail, max_pixels=max_pixels))
        except Refused as error:
            return _said({"refused": type(error).__name__, "detail": error.detail})
        except MemoryError:
            return _said({"refused": Unusable.__name__, "detail": "Decoding this image takes too much memory."})

    def prepare(self, data: bytes, *, thumbnail: bool, max_pixels: int) -> Prepared | Larger:
        """Raises NotAccepted or Unusable."""
        with self._decoder.opened(data) as (opened, name):
            if opened.width * opened.height > max_pixels:
                return Larger(opened.width * opened.height)
            image = upright_rgb(opened)
        pixels, box = preprocess(image, self._framing)
        return Prepared(
            pixels=pixels,
            size=image.size,
            box=box,
            format=name,
            thumbnail=self._thumbnail(image) if thumbnail else None,
        )

    def _thumbnail(self, image: Image.Image) -> bytes:
        shrink = self._thumbnail_px / max(image.size)
        if shrink < 1:
            width, height = (max(round(side * shrink), 1) for side in image.size)
            image = image.resize((width, height), reducing_gap=2.0)
        out = BytesIO()
        image.save(out, "JPEG", quality=THUMBNAIL_QUALITY)
        return out.getvalue()


def pack(data: bytes, *, thumbnail: bool, max_pixels: int) -> bytes:
    return _REQUEST.pack(max_pixels, thumbnail) + data


def unpack(answer: bytearray, *, shape: tuple[int, int]) -> Prepared | Larger:
    """`shape` is the height and width that the network takes. The pixels are a view of `answer`.

    Raises NotAccepted, Unusable, or GarbledAnswer.
    """
    try:
        said, blobs = _heard(answer)
        if "refused" in said:
            raise _REFUSALS[said["refused"]](str(said["detail"]))
        if "larger" in said:
            return Larger(int(said["larger"]))
        end = blobs + shape[0] * shape[1] * 3
        width, height = map(int, said["size"])
        return Prepared(
            pixels=np.frombuffer(answer, np.uint8, end - blobs, blobs).reshape(*shape, 3),
            size=(width, height),
            box=Box(*map(float, said["box"])),
            format=str(said["format"]),
            thumbnail=bytes(answer[end:]) if said["thumbnail"] else None,
        )
    except (ValueError, KeyError, TypeError, struct.error) as error:
        raise GarbledAnswer from error


def _packed(done: Prepared | Larger) -> bytes:
    if isinstance(done, Larger):
        return _said({"larger": done.pixels})
    said = {"size": done.size, "box": done.box, "format": done.format, "thumbnail": done.thumbnail is not None}
    return _said(said, done.pixels.tobytes(), done.thumbnail or b"")


def _said(said: dict[str, object], *blobs: bytes) -> bytes:
    text = json.dumps(said).encode()
    return b"".join((_ANSWER.pack(len(text)), text, *blobs))


def _heard(answer: bytearray) -> tuple[Any, int]:
    (length,) = _ANSWER.unpack_from(answer)
    end = _ANSWER.size + length
    return json.loads(answer[_ANSWER.size : end]), end
