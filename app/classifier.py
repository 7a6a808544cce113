"""The path of one image: decoded, preprocessed, batched, and its maps kept."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.bundle import Bundle
from app.images.intake import Intake
from app.images.preparer import Prepared
from app.images.upload import Upload
from app.inference.batcher import Batcher
from app.inference.engine import Graph, Outputs, Pixels
from app.inference.scoring import Prediction, rank
from app.maps.distance import RunningDistance
from app.maps.record import Maps, Record
from app.stores.store import Store
from app.telemetry.stages import Stages


@dataclass(frozen=True, kw_only=True)
class Processed:
    """One image after the forward pass. C classes, F features: what the head reads."""

    logits: npt.NDArray[np.floating] | None  # (C,); None for a model without a head
    embedding: npt.NDArray[np.floating]  # (F,)
    width: int  # of the upright image
    height: int
    format: str
    id: str | None  # of the kept maps


Image = Upload | Pixels  # to decode, or the network's input itself


class Classifier:
    """Hands the work to others: it owns no thread and no session."""

    def __init__(
        self,
        *,
        bundle: Bundle,
        intake: Intake,
        batcher: Batcher,
        store: Store,
        distance: RunningDistance,
    ) -> None:
        self._manifest = bundle.manifest
        self._intake = intake
        self._batcher = batcher
        self._store = store
        self._distance = distance

    async def process(self, image: Image, *, attention: bool, stages: Stages, deadline: float = math.inf) -> Processed:
        """Runs the model on an image, and keeps its maps if `attention`.

        Raises UnsupportedType or UnusableImage before an image reaches a batch, and the errors of `Batcher.run`.

        `deadline` is in seconds of time.monotonic.
        """
        with stages.time("decode"):
            if isinstance(image, Upload):
                prepared = await self._intake.prepare(image, thumbnail=attention)
            else:
                prepared = await self._intake.accept(image, thumbnail=attention)
        graph: Graph = "explain" if attention else "classify"
        outputs = await self._batcher.run(graph, prepared.pixels, deadline=deadline, stages=stages)
        return Processed(
            logits=outputs.get("logits"),
            embedding=outputs["embedding"],
            width=prepared.size[0],
            height=prepared.size[1],
            format=prepared.format,
            id=await self._keep(prepared, outputs, stages),
        )

    def rank(
        self, logits: npt.NDArray[np.floating] | None, top_k: int | None, threshold: float = 0.0
    ) -> list[Prediction]:
        """At most `top_k` labels, or all, with a score of at least `threshold`; none for a model without a head."""
        if logits is None:
            return []
        shape = self._manifest
        return rank(logits, shape.labels, shape.score, top_k, threshold, shape.temperature)

    async def _keep(self, prepared: Prepared, outputs: Outputs, stages: Stages) -> str | None:
        if prepared.thumbnail is None:
            return None
        maps = Maps.of(outputs)
        self._distance.add(maps.distance)
        record = Record(
            maps=maps,
            predictions=tuple(self.rank(outputs.get("logits"), len(maps.classes))),
            image_size=prepared.size,
            box=prepared.box,
            pixels=prepared.pixels,
            thumbnail=prepared.thumbnail,
        )
        with stages.time("store"):
            return await self._store.put(record)
