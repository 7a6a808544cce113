"""What a worker process does: from the bytes of an image to the network's input, and to the thumbnail for maps; and
JSON to what it says.
"""

import math
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from app.errors import MalformedRequest, UnsupportedType, UnusableImage
from app.images.colors import upright_rgb
from app.images.decode import Limits, opened
from app.images.json_body import read_json
from app.images.messages import Answer, pack_answer
from app.images.preprocess import ImageSpec, PreprocessedImage, preprocess
from app.images.resize import fast, reduced
from app.machine import give_back_memory

IMAGE, IMAGE_AND_THUMBNAIL, JSON = range(3)  # what a worker is asked for
THUMBNAIL_QUALITY = 85  # JPEG
THUMBNAIL_PX = 640  # the longest side; a larger image is shrunk by a whole factor


@dataclass(frozen=True, kw_only=True)
class Preparer:
    """The work of a worker: from an upload to a packed answer."""

    limits: Limits
    spec: ImageSpec
    thumbnail_px: int  # the longest side of a thumbnail

    def __setstate__(self, state: dict[str, Any]) -> None:
        """In the fork server, whose workers share what is loaded before they start."""
        vars(self).update(state)
        fast()

    def __call__(self, asked: int, data: bytes, claimed_pixels: int) -> bytes:
        answer: Answer
        try:
            if asked == JSON:
                return read_json(data)
            answer = self.prepare(data, thumbnail=asked == IMAGE_AND_THUMBNAIL, claimed_pixels=claimed_pixels)
        except (UnsupportedType, UnusableImage, MalformedRequest) as error:
            answer = error.with_traceback(None)  # a traceback keeps the upload until garbage is collected
            answer.__context__ = None
        except MemoryError:
            answer = UnusableImage("Decoding this image takes too much memory.")
        finally:
            if asked == JSON:  # it leaves many small blocks; images use the same large ones again
                give_back_memory()
        return b"".join(pack_answer(answer))

    def prepare(self, data: bytes, *, thumbnail: bool, claimed_pixels: int | None = None) -> PreprocessedImage:
        """Raises UnsupportedType or UnusableImage, also for an image of more than `claimed_pixels`."""
        with opened(data, self.limits) as (image, name):
            if claimed_pixels is not None and image.width * image.height > claimed_pixels:
                raise UnusableImage("The image is larger than its header says.")
            upright = upright_rgb(image)
        pixels, box = preprocess(upright, self.spec)
        return PreprocessedImage(
            pixels=pixels,
            size=upright.size,
            box=box,
            format=name,
            thumbnail=thumbnail_of(upright, self.thumbnail_px) if thumbnail else b"",
        )


def thumbnail_of(image: Image.Image, longest: int) -> bytes:
    """A JPEG whose sides are at most `longest` pixels, and more than half of that where the image was larger.

    A whole factor takes a fifth of the time of a resize to exactly `longest`, which a map does not need.
    """
    factor = math.ceil(max(image.size) / longest)
    return _jpeg(reduced(image, factor) if factor > 1 else image)


def jpeg(pixels: npt.NDArray[np.uint8]) -> bytes:
    """Pixels (height, width, 3) as a thumbnail has them."""
    return _jpeg(Image.fromarray(pixels))


def _jpeg(image: Image.Image) -> bytes:
    out = BytesIO()
    image.save(out, "JPEG", quality=THUMBNAIL_QUALITY)
    return out.getvalue()
