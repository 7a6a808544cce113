"""The path of one image: decoded, preprocessed, batched, and its maps kept."""

import asyncio
import logging
import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.errors import DeadlineExceeded, Fault, ServiceError
from app.images.decode import LargeImage
from app.images.intake import Intake
from app.images.upload import Upload
from app.inference.batcher import Batcher
from app.inference.engine import Graph, Pixels
from app.maps.record import Maps, Record, RecordFormat
from app.stores.id import new_id
from app.stores.store import Store
from app.telemetry.stages import Stages

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Processed:
    """One image after the forward pass. C classes (0 without a head), F features: what the head reads."""

    logits: npt.NDArray[np.floating]  # (C,)
    embedding: npt.NDArray[np.floating]  # (F,)
    size: tuple[int, int]  # (width, height) of the upright image
    format: str
    id: str | None  # of the kept maps, if any


Image = Upload | Pixels  # to decode, or the network's input itself
Outcome = Processed | ServiceError  # of one image


@dataclass(frozen=True, kw_only=True)
class Classifier:
    """Hands the work to others: it owns no thread and no session."""

    intake: Intake
    batcher: Batcher
    store: Store
    records: RecordFormat

    async def process(self, image: Image, *, keep: bool, stages: Stages, deadline: float) -> Outcome | LargeImage:
        """Runs the model on an image, and computes and keeps its maps if `keep`. What goes wrong is its outcome, so
        that it fails this image alone. LargeImage asks to come again: then it waits for other large images.

        `deadline` is in seconds of time.monotonic.
        """
        id_of_maps = None
        try:
            async with asyncio.timeout(deadline - time.monotonic()):
                with stages.time("decode"):
                    if isinstance(image, Upload):
                        prepared = await self.intake.prepare(image, thumbnail=keep)
                    else:
                        prepared = await self.intake.accept(image, thumbnail=keep)
                graph: Graph = "explain" if keep else "classify"
                outputs = await self.batcher.run(graph, prepared.pixels, deadline=deadline, stages=stages)
                if keep:
                    with stages.time("store"):
                        id, packed = new_id(), self.records.pack(Record(maps=Maps.of(outputs), image=prepared))
                        id_of_maps = id if await self.store.keep(id, packed) else None
            return Processed(
                logits=outputs.get("logits", np.zeros(0, np.float32)),
                embedding=outputs["embedding"],
                size=prepared.size,
                format=prepared.format,
                id=id_of_maps,
            )
        except TimeoutError:
            return DeadlineExceeded()
        except (ServiceError, LargeImage) as error:
            return error
        except Exception:
            log.exception("an image failed unexpectedly")
            return Fault()
