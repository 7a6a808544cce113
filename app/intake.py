"""From the bytes of an upload to what the network gets and what maps are drawn on, in worker threads."""

import asyncio
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from io import BytesIO

import numpy as np
import numpy.typing as npt
from PIL import Image

from app.bundle import ImageSpec
from app.images import Decoder, upright_rgb
from app.preprocess import Box, preprocess

LARGE_PIXELS = 4_000_000  # a picture of more is decoded in a tenth of a second and not in milliseconds
THUMBNAIL_QUALITY = 85  # JPEG


@dataclass(frozen=True, kw_only=True)
class Prepared:
    pixels: npt.NDArray[np.uint8]  # (height, width, 3) of the network's input
    size: tuple[int, int]  # width, height of the upright picture
    box: Box  # what the network sees of it
    format: str
    thumbnail: bytes | None  # JPEG of the upright picture, scaled down


class Intake:
    """Large pictures leave one worker to the others: those of a camera do not hold up those of a page."""

    def __init__(self, *, decoder: Decoder, spec: ImageSpec, pool: Executor, workers: int, thumbnail_px: int) -> None:
        self._decoder = decoder
        self._spec = spec
        self._pool = pool
        self._large = asyncio.Semaphore(max(workers - 1, 1))
        self._thumbnail_px = thumbnail_px

    async def prepare(self, data: bytes, *, thumbnail: bool) -> Prepared:
        """Raises UnsupportedType or UnusableImage."""
        loop = asyncio.get_running_loop()
        decode = partial(self.decode, data, thumbnail=thumbnail)
        done = await loop.run_in_executor(self._pool, partial(decode, max_pixels=LARGE_PIXELS))
        if done is None:
            async with self._large:
                done = await loop.run_in_executor(self._pool, partial(decode, max_pixels=self._decoder.max_pixels))
        assert done is not None
        return done

    def decode(self, data: bytes, *, thumbnail: bool, max_pixels: int) -> Prepared | None:
        """Blocks. None for a picture of more than `max_pixels`, of which no pixel has been decoded."""
        with self._decoder.opened(data) as (opened, name):
            if opened.width * opened.height > max_pixels:
                return None
            image = upright_rgb(opened)
        pixels, box = preprocess(image, self._spec)
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
