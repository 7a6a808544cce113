"""From the bytes of an upload to the network's input, or to what its JSON says, by way of a process that decodes."""

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from PIL import Image

from app.errors import MalformedRequest, Overloaded, UnusableImage
from app.images.decode import MAX_SIDE, Limits
from app.images.headers import size_in_header
from app.images.json_body import read_json, unpack_document
from app.images.messages import MAX_FACTS_BYTES, GarbledAnswer, unpack_answer
from app.images.pool import Question, WorkerFailed, WorkerKilled, WorkerPool, WorkerTimedOut
from app.images.preparer import IMAGE, IMAGE_AND_THUMBNAIL, JSON, THUMBNAIL_PX, Preparer, thumbnail_of
from app.images.preprocess import Box, ImageSpec, PreprocessedImage
from app.images.turns import LARGE_PIXELS, Turns
from app.images.upload import Upload
from app.machine import allowed_cores, allowed_memory
from app.settings import Settings

T = TypeVar("T")

MIN_WORKERS = 2  # one for large images, one for small
MEMORY_SHARES = 4  # of the memory decoders take one at most with small images, and one with large images
BYTES_PER_PIXEL = 12  # of an image that is being decoded: as decoded, as turned or converted, and what is made of it
MAX_JSON_HERE_BYTES = 2**12  # of JSON that this process reads itself: it takes a tenth of a millisecond
TRIES = 3  # each in another process: one that crashes may have been ended from outside


@dataclass(frozen=True, kw_only=True)
class Preprocessor:
    """Sends an upload to a worker, and to others where that fails."""

    pool: WorkerPool
    size: tuple[int, int]  # height, width of the network's input
    max_pixels: int  # of an image; a worker refuses one of more before it decodes anything
    thumbnail_px: int  # the longest side of a thumbnail

    async def prepare(self, upload: Upload, *, thumbnail: bool) -> PreprocessedImage:
        """Raises UnsupportedType or UnusableImage, and Overloaded when no worker can be started, or workers are ended
        from outside, which is not the fault of the image.
        """
        width, height = size_in_header(upload.read)
        question = Question(
            kind=IMAGE_AND_THUMBNAIL if thumbnail else IMAGE,
            upload=upload,
            pixels=width * height if width * height <= self.max_pixels else 0,
            max_answer_bytes=MAX_FACTS_BYTES * 2 + 3 * (self.size[0] * self.size[1] + self.thumbnail_px**2),
            unpack=partial(unpack_answer, shape=self.size),
        )
        return await self._answer(question, UnusableImage, "Decoding this image takes too long.")

    async def read_json(self, upload: Upload) -> Any:
        """What a JSON text says, with an Upload for each long string, which has to be base64, and an array of uint8 for
        each long list of numbers. Raises MalformedRequest and Overloaded.
        """
        if len(upload) <= MAX_JSON_HERE_BYTES:
            return unpack_document(read_json(upload.read(0, MAX_JSON_HERE_BYTES)))
        question = Question(
            kind=JSON,
            upload=upload,
            pixels=len(upload),
            max_answer_bytes=MAX_FACTS_BYTES * 2 + len(upload),
            unpack=unpack_document,
        )
        return await self._answer(question, MalformedRequest, "Reading this JSON takes too long.")

    async def _answer(self, question: Question[T], refusal: type[UnusableImage | MalformedRequest], late: str) -> T:
        crashed = True
        for _ in range(TRIES):
            try:
                return await self.pool.run(question)
            except WorkerTimedOut:
                raise refusal(late) from None
            except GarbledAnswer:
                break
            except (WorkerKilled, OSError):
                crashed = False
            except WorkerFailed:
                pass
        if not crashed:
            raise Overloaded("Nothing can be decoded at the moment. Send this request again in a moment.")
        raise refusal("This could not be decoded: the decoder crashed on it.")

    async def prepare_pixels(self, pixels: npt.NDArray[np.uint8], *, thumbnail: bool) -> PreprocessedImage:
        """Pixels (height, width, 3) that need no decoding: nothing about them can be hostile."""
        height, width, _ = pixels.shape
        small = b""
        if thumbnail:
            small = await asyncio.to_thread(thumbnail_of, Image.fromarray(pixels), self.thumbnail_px)
        size, box = (width, height), Box(0, 0, width, height)
        return PreprocessedImage(pixels=pixels, size=size, box=box, format="pixels", thumbnail=small)


def open_preprocessor(*, settings: Settings, spec: ImageSpec) -> Preprocessor:
    """A preprocessor that has not been started."""
    limits = Limits(max_pixels=settings.max_image_pixels)
    in_memory = allowed_memory() // MEMORY_SHARES // BYTES_PER_PIXEL
    workers = settings.decode_workers or max(min(allowed_cores(), in_memory // LARGE_PIXELS), MIN_WORKERS)
    max_pixels = min(settings.max_image_pixels, MAX_SIDE**2)
    pool = WorkerPool(
        work=Preparer(limits=limits, spec=spec, thumbnail_px=THUMBNAIL_PX),
        turns=Turns(workers=workers, max_large_pixels=in_memory),
        max_pixels=max(max_pixels, settings.max_upload_bytes),
    )
    return Preprocessor(pool=pool, size=spec.size, max_pixels=max_pixels, thumbnail_px=THUMBNAIL_PX)
