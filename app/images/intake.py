"""From the bytes of an upload to the network's input, by way of a process that decodes."""

import asyncio
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from PIL import Image

from app.errors import Overloaded, UnusableImage
from app.images.decode import MAX_SIDE, Limits
from app.images.messages import GarbledAnswer, unpack_answer
from app.images.pool import WorkerFailed, WorkerKilled, WorkerPool, WorkerTimedOut
from app.images.preparer import THUMBNAIL_PX, Preparer, thumbnail_of
from app.images.preprocess import Box, ImageSpec, Prepared
from app.images.turns import LARGE_PIXELS, Turns
from app.images.upload import Upload
from app.machine import allowed_cores, allowed_memory
from app.settings import Settings

MIN_WORKERS = 2  # one for large images, one for small
MEMORY_SHARES = 4  # of the memory small images take one at most, and large images another
BYTES_PER_PIXEL = 12  # of an image that is being decoded: as decoded, as turned or converted, and what is made of it
ANSWER_BYTES = 2**16  # in addition to pixels and thumbnail, each of at most three bytes a pixel
TRIES = 3  # each in another process: one that crashes may have been ended from outside


@dataclass(frozen=True, kw_only=True)
class Intake:
    """Sends an upload to a worker, and to others where that fails."""

    pool: WorkerPool
    thumbnail_px: int  # the longest side of a thumbnail

    async def prepare(self, upload: Upload, *, thumbnail: bool) -> Prepared:
        """Raises UnsupportedType or UnusableImage, and Overloaded when no worker can be started, or workers are ended
        from outside, which is not the fault of the image.
        """
        crashed = True
        for _ in range(TRIES):
            try:
                return await self.pool.run(upload, thumbnail=thumbnail)
            except WorkerTimedOut:
                raise UnusableImage("Decoding this image takes too long.") from None
            except GarbledAnswer:
                break
            except (WorkerKilled, OSError):
                crashed = False
            except WorkerFailed:
                pass
        if not crashed:
            raise Overloaded("No image can be decoded at the moment. Send this request again in a moment.")
        raise UnusableImage("The image could not be decoded: the decoder crashed on it.")

    async def prepare_pixels(self, pixels: npt.NDArray[np.uint8], *, thumbnail: bool) -> Prepared:
        """Pixels (height, width, 3) that need no decoding: nothing about them can be hostile."""
        height, width, _ = pixels.shape
        small = b""
        if thumbnail:
            small = await asyncio.to_thread(thumbnail_of, Image.fromarray(pixels), self.thumbnail_px)
        size, box = (width, height), Box(0, 0, width, height)
        return Prepared(pixels=pixels, size=size, box=box, format="pixels", thumbnail=small)


def open_intake(*, settings: Settings, spec: ImageSpec) -> Intake:
    """An intake that has not been started."""
    limits = Limits(max_pixels=settings.max_image_pixels)
    max_pixels = allowed_memory() // MEMORY_SHARES // BYTES_PER_PIXEL
    workers = settings.decode_workers or max(min(allowed_cores(), max_pixels // LARGE_PIXELS), MIN_WORKERS)
    pool = WorkerPool(
        work=Preparer(limits=limits, spec=spec, thumbnail_px=THUMBNAIL_PX),
        turns=Turns(workers=workers, max_large_pixels=max_pixels),
        max_pixels=min(settings.max_image_pixels, MAX_SIDE**2),
        max_answer_bytes=ANSWER_BYTES + 3 * (spec.size[0] * spec.size[1] + THUMBNAIL_PX**2),
        unpack=partial(unpack_answer, shape=spec.size),
    )
    return Intake(pool=pool, thumbnail_px=THUMBNAIL_PX)
