"""The path of one image: decoded, preprocessed, batched, and kept so that its maps can be made."""

import asyncio
import logging
import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.bundle import Graph
from app.errors import DeadlineExceeded, Fault, ServiceError
from app.images.preprocess import PreprocessedImage
from app.images.preprocessor import Preprocessor
from app.images.upload import Upload
from app.inference.batcher import Batcher
from app.inference.engine import NOTHING_ASKED, Asked, Pixels
from app.inference.familiarity import Familiarity
from app.maps.explainer import Explainer
from app.maps.record import Maps
from app.telemetry.stages import Stages

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Processed:
    """One image after the forward pass. C classes (0 without a head), F features: what the head reads."""

    logits: npt.NDArray[np.floating]  # (C,)
    embedding: npt.NDArray[np.floating]  # (F,)
    familiarity: float | None  # 0 to 1; None if the bundle does not know its images
    id: str | None  # under which it is kept, if it is
    image: PreprocessedImage
    maps: Maps | None  # where they were asked for now
    tokens: npt.NDArray[np.floating] | None  # (T, features), where they were asked for


Image = Upload | Pixels  # to decode, or the network's input itself
Outcome = Processed | ServiceError  # of one image


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a request wants of each of its images, and until when."""

    keep: bool
    drawn: bool  # maps may be drawn on it
    explain: Asked | None  # make the maps too, with evidence for this
    tokens: str | None  # the array of tokens that it gets
    least_familiarity: float  # below it an image has gone wrong
    deadline: float  # seconds of time.monotonic
    stages: Stages

    @property
    def graph(self) -> Graph:
        if self.explain is not None:
            return "explain"
        return "tokens" if self.tokens else "classify"


@dataclass(frozen=True, kw_only=True)
class Classifier:
    """Hands the work to others: it owns no thread and no session."""

    preprocessor: Preprocessor
    batcher: Batcher
    familiarity: Familiarity | None
    explainer: Explainer

    async def process(self, image: Image, wanted: Wanted) -> Outcome:
        """Runs the model on an image, and keeps it as `wanted`. What goes wrong is its outcome, so that it fails this
        image alone.
        """
        try:
            async with asyncio.timeout(wanted.deadline - time.monotonic()):
                return await self._process(image, wanted)
        except TimeoutError:
            return DeadlineExceeded()
        except ServiceError as error:
            return error
        except Exception:
            log.exception("an image failed unexpectedly")
            return Fault()

    async def _process(self, image: Image, wanted: Wanted) -> Processed:
        prepared = await self._decode(image, wanted)
        outputs = await self.batcher.run(
            wanted.graph,
            prepared.pixels,
            asked=wanted.explain or NOTHING_ASKED,
            deadline=wanted.deadline,
            stages=wanted.stages,
        )
        logits, embedding = outputs.get("logits", np.zeros(0, np.float32)), outputs["embedding"]
        familiarity = self.familiarity.of(outputs, least=wanted.least_familiarity) if self.familiarity else None
        maps = None if wanted.explain is None else Maps.of(outputs)
        id = None
        if wanted.keep:
            with wanted.stages.time("store"):
                id = await self.explainer.keep(prepared, logits, maps)
        return Processed(
            logits=logits,
            embedding=embedding,
            familiarity=familiarity,
            id=id,
            image=prepared,
            maps=maps,
            tokens=outputs[wanted.tokens] if wanted.tokens else None,
        )

    async def _decode(self, image: Image, wanted: Wanted) -> PreprocessedImage:
        with wanted.stages.time("decode"):
            if isinstance(image, Upload):
                return await self.preprocessor.prepare(image, thumbnail=wanted.drawn)
            return await self.preprocessor.prepare_pixels(image, thumbnail=wanted.drawn)
