"""Keeps images, and makes their maps when somebody asks for them, once for all who ask at the same time."""

import asyncio
import hashlib
import logging
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from app.bundle import Graph
from app.errors import DeadlineExceeded, UnknownAttention
from app.images.preprocess import PreprocessedImage
from app.inference.batcher import Batcher
from app.inference.engine import NOTHING_ASKED, Asked, Outputs
from app.inference.scoring import most_likely
from app.maps.record import DamagedRecord, KeptImage, Maps, RecordFormat
from app.telemetry.metrics import Metrics
from app.telemetry.stages import Stages

log = logging.getLogger(__name__)

T = TypeVar("T")


class Bytes(Protocol):
    """A store, which knows neither images nor maps."""

    async def keep(self, key: str, value: bytes) -> bool: ...

    async def find(self, key: str) -> bytes | None: ...


class Places(Protocol):
    """The places of images in progress. A run of the model takes one."""

    def admit(self, images: int, *, deadline: float) -> AbstractContextManager[Callable[[], None]]: ...


@dataclass(kw_only=True)
class Explainer:
    """Belongs to the event loop."""

    batcher: Batcher
    store: Bytes
    new_id: Callable[[], str]
    records: RecordFormat
    places: Places
    run_timeout_s: float  # of a run; its callers may wait for less
    metrics: Metrics
    _running: dict[str, asyncio.Task[Maps]] = field(default_factory=dict, init=False)
    _waiting: Counter[str] = field(default_factory=Counter, init=False)  # callers of each run

    async def keep(self, image: PreprocessedImage, logits: npt.NDArray[np.floating], maps: Maps | None) -> str | None:
        """The id under which an image is kept, with its `maps` where they are made. None if it cannot be kept.

        `logits` are (classes,), the answer to the image.
        """
        id = self.new_id()
        likely = most_likely(logits, self.records.explained) if maps is None else maps.classes
        kept = KeptImage(image=image, classes=tuple(likely.tolist()))
        if not await self.store.keep(id, self.records.pack_image(kept)):
            return None
        if maps is not None:
            await self.store.keep(_key(id, Asked(kept.classes)), self.records.pack_maps(maps))
        return id

    async def find(self, id: str, stages: Stages) -> KeptImage:
        """Raises UnknownAttention, StoreUnavailable."""
        with stages.time("store"):
            kept = await self._read(id, self.records.unpack_image)
        if kept is None:
            raise UnknownAttention
        return kept

    async def maps(self, id: str, kept: KeptImage, asked: Asked, *, deadline: float, stages: Stages) -> Maps:
        """The maps of a kept image with evidence for what is `asked`: from the store, or made and kept there.

        The run goes on when a caller's `deadline` passes (seconds of time.monotonic), and is cancelled when its last
        caller is. Raises DeadlineExceeded, StoreUnavailable, and what admission and the batcher raise.
        """
        key = _key(id, asked)
        with stages.time("store"):
            if (found := await self._read(key, self.records.unpack_maps)) is not None:
                return found
        if (running := self._running.get(key)) is None:
            running = self._running[key] = asyncio.create_task(self._make(key, kept, asked, deadline, stages))
            running.add_done_callback(partial(self._made, key))
        self._waiting[key] += 1
        try:
            await asyncio.wait([running], timeout=deadline - time.monotonic())
        except asyncio.CancelledError:
            if self._waiting[key] == 1 and running.cancel():
                del self._running[key]  # the next caller needs a new run
            raise
        finally:
            self._waiting -= Counter([key])  # which leaves out what is 0
        if not running.done():
            raise DeadlineExceeded
        return running.result()

    async def run(
        self,
        graph: Graph,
        kept: KeptImage,
        *,
        deadline: float,
        stages: Stages,
        asked: Asked = NOTHING_ASKED,
        latest: float | None = None,
    ) -> Outputs:
        """The outputs of a graph for a kept image. The run gets a place only if it could end by `deadline`, and may
        begin until `latest`, or the same. Raises what admission and the batcher raise.
        """
        with self.places.admit(1, deadline=deadline) as answered:
            outputs = await self.batcher.run(
                graph,
                kept.image.pixels,
                asked=asked,
                deadline=latest or deadline,
                stages=stages,
            )
            answered()
        return outputs

    async def keep_passes(self, id: str, output: str, answers: npt.NDArray[np.float32]) -> None:
        """Keep an output (passes, ...) for a kept image under the first masks of its grid."""
        await self.store.keep(_passes_key(id, output), self.records.pack_passes(answers))

    async def passes(self, id: str, output: str) -> npt.NDArray[np.float32] | None:
        """What `keep_passes` has kept. Raises StoreUnavailable."""
        return await self._read(_passes_key(id, output), partial(self.records.unpack_passes, output))

    async def finish(self) -> None:
        """Wait for the runs of callers whose deadline has passed."""
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _read(self, key: str, unpack: Callable[[bytes], T]) -> T | None:
        """None for a value that is missing or damaged."""
        packed = await self.store.find(key)
        if packed is None:
            return None
        try:
            return await asyncio.to_thread(unpack, packed)
        except DamagedRecord:
            log.warning("the store has %d bytes under an id that are nothing of this model", len(packed))
            self.metrics.store_failures.labels("get", "damaged").inc()
            return None

    async def _make(self, key: str, kept: KeptImage, asked: Asked, deadline: float, stages: Stages) -> Maps:
        """`deadline` is the first caller's."""
        latest = time.monotonic() + self.run_timeout_s
        outputs = await self.run("explain", kept, deadline=deadline, stages=stages, asked=asked, latest=latest)
        maps = Maps.of(outputs)
        await self.store.keep(key, self.records.pack_maps(maps))
        return maps

    def _made(self, key: str, task: asyncio.Task[Maps]) -> None:
        if not task.cancelled():
            del self._running[key]
            task.exception()  # so that asyncio does not report it


def _passes_key(id: str, output: str) -> str:
    return f"{id}/passes/{output}"


def _key(id: str, asked: Asked) -> str:
    """The key of maps in the store."""
    key = f"{id}/{'-'.join(map(str, asked.classes))}"
    directions = asked.directions
    return f"{key}/{hashlib.sha256(directions.tobytes()).hexdigest()[:32]}" if len(directions) else key
