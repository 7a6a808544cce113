"""The path of one picture: bytes -> decoded -> preprocessed -> batched -> ranked, and its maps kept."""

import asyncio
from concurrent.futures import Executor
from dataclasses import dataclass
from io import BytesIO

import numpy as np
import numpy.typing as npt
from PIL import Image

from app.batcher import Batcher
from app.bundle import Bundle
from app.distance import RunningDistance
from app.engine import Outputs
from app.images import Decoder
from app.labels import Prediction, rank
from app.maps import Maps
from app.preprocess import Box, preprocess
from app.store import MemoryStore, Record

THUMBNAIL_QUALITY = 85  # JPEG


@dataclass(frozen=True, kw_only=True)
class Classified:
    predictions: list[Prediction]
    width: int  # of the upright picture
    height: int
    format: str
    id: str | None  # of the kept maps


@dataclass(frozen=True, kw_only=True)
class _Prepared:
    pixels: npt.NDArray[np.uint8]
    size: tuple[int, int]
    box: Box
    format: str
    thumbnail: bytes | None


class Classifier:
    """Owns no thread and no session: it hands work to those that do."""

    def __init__(
        self,
        *,
        bundle: Bundle,
        decoder: Decoder,
        batcher: Batcher,
        store: MemoryStore,
        distance: RunningDistance,
        decode_pool: Executor,
        thumbnail_px: int,
    ) -> None:
        self._manifest = bundle.manifest
        self._decoder = decoder
        self._batcher = batcher
        self._store = store
        self._distance = distance
        self._decode_pool = decode_pool
        self._thumbnail_px = thumbnail_px

    async def classify(self, data: bytes, *, top_k: int, attention: bool) -> Classified:
        """Raises UnsupportedType or UnusableImage for a picture that never reaches a batch."""
        loop = asyncio.get_running_loop()
        prepared = await loop.run_in_executor(self._decode_pool, self._prepare, data, attention)
        outputs = await self._batcher.run("explain" if attention else "classify", prepared.pixels)
        return Classified(
            predictions=rank(outputs["logits"], self._manifest.labels, self._manifest.score, top_k),
            width=prepared.size[0],
            height=prepared.size[1],
            format=prepared.format,
            id=self._keep(prepared, outputs),
        )

    def _prepare(self, data: bytes, attention: bool) -> _Prepared:
        image, name = self._decoder.decode(data)
        pixels, box = preprocess(image, self._manifest.image)
        thumbnail = self._thumbnail(image) if attention else None
        return _Prepared(pixels=pixels, size=image.size, box=box, format=name, thumbnail=thumbnail)

    def _thumbnail(self, image: Image.Image) -> bytes:
        small = image.copy()
        small.thumbnail((self._thumbnail_px, self._thumbnail_px), reducing_gap=2.0)
        out = BytesIO()
        small.save(out, "JPEG", quality=THUMBNAIL_QUALITY)
        return out.getvalue()

    def _keep(self, prepared: _Prepared, outputs: Outputs) -> str | None:
        if prepared.thumbnail is None:
            return None
        maps = Maps.of(outputs)
        self._distance.add(maps.distance)
        return self._store.put(
            Record(
                maps=maps,
                image_size=prepared.size,
                box=prepared.box,
                pixels=prepared.pixels,
                thumbnail=prepared.thumbnail,
            )
        )
