"""What a worker process does: from the bytes of an upload to the network's input, and to the thumbnail for maps."""

import math
from dataclasses import dataclass
from io import BytesIO

from PIL import Image

from app.errors import UnsupportedType, UnusableImage
from app.images.colors import upright_rgb
from app.images.decode import LargeImage, Limits, opened
from app.images.messages import Answer, pack_answer
from app.images.preprocess import ImageSpec, Prepared, preprocess

LARGE_PIXELS = 4_000_000  # an image of more takes a tenth of a second to decode, and not milliseconds
THUMBNAIL_QUALITY = 85  # JPEG


@dataclass(frozen=True, kw_only=True)
class Preparer:
    """The work of a worker: from an upload to a packed answer."""

    limits: Limits
    spec: ImageSpec
    thumbnail_px: int  # the longest side of a thumbnail

    def __call__(self, data: bytes, even_large: bool, thumbnail: bool) -> bytes:
        answer: Answer
        try:
            answer = self.prepare(data, thumbnail=thumbnail, even_large=even_large)
        except (UnsupportedType, UnusableImage, LargeImage) as error:
            answer = error.with_traceback(None)  # a traceback keeps the image until garbage is collected
        except MemoryError:
            answer = UnusableImage("Decoding this image takes too much memory.")
        return b"".join(pack_answer(answer))

    def prepare(self, data: bytes, *, thumbnail: bool, even_large: bool = True) -> Prepared:
        """Raises UnsupportedType or UnusableImage. Without `even_large` it decodes at most LARGE_PIXELS, else raises
        LargeImage.
        """
        with opened(data, self.limits) as (image, name):
            if not even_large and image.width * image.height > LARGE_PIXELS:
                raise LargeImage(image.width * image.height)
            upright = upright_rgb(image)
        pixels, box = preprocess(upright, self.spec)
        return Prepared(
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
    out = BytesIO()
    factor = math.ceil(max(image.size) / longest)
    (image.reduce(factor) if factor > 1 else image).save(out, "JPEG", quality=THUMBNAIL_QUALITY)
    return out.getvalue()
