"""The path of one image: decoded, preprocessed, batched, and its maps kept."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.images.intake import Intake
from app.images.upload import Upload
from app.inference.batcher import Batcher
from app.inference.engine import Graph, Pixels
from app.inference.scoring import Scoring
from app.maps.distance import RunningDistance
from app.maps.record import Maps, Record
from app.stores.store import Store
from app.telemetry.stages import Stages


@dataclass(frozen=True, kw_only=True)
class Processed:
    """One image after the forward pass. C classes (0 without a head), F features: what the head reads."""

    logits: npt.NDArray[np.floating]  # (C,)
    embedding: npt.NDArray[np.floating]  # (F,)
    width: int  # of the upright image
    height: int
    format: str
    id: str | None  # of the kept maps, if any


Image = Upload | Pixels  # to decode, or the network's input itself


@dataclass(frozen=True, kw_only=True)
class Classifier:
    """Hands the work to others: it owns no thread and no session."""

    intake: Intake
    batcher: Batcher
    scoring: Scoring
    store: Store
    distance: RunningDistance

    async def process(self, image: Image, *, keep: bool, stages: Stages, deadline: float) -> Processed:
        """Runs the model on an image, and computes and keeps its maps if `keep`.

        `deadline` is in seconds of time.monotonic. Raises UnsupportedType or UnusableImage before an image reaches a
        batch, and the errors of `Batcher.run`.
        """
        with stages.time("decode"):
            if isinstance(image, Upload):
                prepared = await self.intake.prepare(image, thumbnail=keep)
            else:
                prepared = await self.intake.accept(image, thumbnail=keep)
        graph: Graph = "explain" if keep else "classify"
        outputs = await self.batcher.run(graph, prepared.pixels, deadline=deadline, stages=stages)
        logits, id_of_maps = outputs.get("logits", np.zeros(0, np.float32)), None
        if keep:
            maps = Maps.of(outputs)
            self.distance.add(maps.distance)
            predictions = tuple(self.scoring.predictions(logits, maps.classes))
            with stages.time("store"):
                id_of_maps = await self.store.put(Record(maps=maps, predictions=predictions, image=prepared))
        return Processed(
            logits=logits,
            embedding=outputs["embedding"],
            width=prepared.size[0],
            height=prepared.size[1],
            format=prepared.format,
            id=id_of_maps,
        )
