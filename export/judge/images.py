"""Every map that a bundle offers of an image, and how faithful each is, by the service's own parts."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from app.backend import Backend
from app.errors import InferenceFailed, NoClasses, UnsupportedType, UnusableImage
from app.images.preprocess import PreprocessedImage
from app.images.upload import Upload
from app.inference.scoring import Logits, Scoring
from app.maps.choice import Choice, choose
from app.maps.faithfulness import Numbers, seeded
from app.maps.judgement import FILLS, MEASURED, RANDOM
from app.maps.measured import PASSES, log_odds, measure
from app.maps.measured import Masks as MeasuredMasks
from app.maps.occlusion import Fill, Occlusion
from app.maps.record import Maps
from app.settings import Settings
from export.judge.areas import areas
from export.judge.masks import Masks, Patches
from export.messages import warn
from export.walk import read_file
from model.progress import track


class Way(NamedTuple):
    """How a map is made, in the names of a request."""

    method: str
    layer: str | None = None
    passes: int = 0  # beside the one that gives all the others


WAYS = {  # by their titles
    "class token (last layer)": Way("class_token"),
    "class token (mean of layers)": Way("class_token", layer="mean"),
    "rollout": Way("rollout"),
    "evidence": Way("evidence"),
    "positive evidence": Way("positive_evidence"),
    "measured": Way(MEASURED, passes=PASSES),
    "random": Way(RANDOM),
}
Values = npt.NDArray[np.float32]  # (rows, columns)


@dataclass(frozen=True, kw_only=True)
class JudgedImage:
    file: Path
    label: str  # the answer, whose score is followed
    score: float
    image: PreprocessedImage
    maps: dict[str, Values]  # by their titles
    areas: Numbers  # (maps, fills, 2)
    on_object: Patches | None  # (patches,), where it is known


def judged(bundle: Path, images: Mapping[Path, Path], masks: Path | None) -> list[JudgedImage]:
    """Of files by their names in `masks`, those that can be used; stderr names the others.

    Raises CannotStart, NoClasses for a model without a head, and ValueError for a mask that is not of its image.
    """
    found = []
    with _opened(bundle, masks) as judge, asyncio.Runner() as runner:
        for name, file in track(images.items(), "judging maps", of=len(images)):
            try:
                found.append(runner.run(judge.judged(file, name)))
            except (UnsupportedType, UnusableImage, InferenceFailed) as error:
                warn(f"{file} is skipped: {error.detail}")
            except OSError as error:
                warn(f"{file} is skipped: {error.strerror or error}")
    return found


@contextmanager
def _opened(bundle: Path, masks: Path | None) -> Iterator["_Judge"]:
    backend = Backend(settings=Settings(bundle=bundle))
    try:
        manifest = backend.bundle.manifest
        if not manifest.labels:
            raise NoClasses
        with ThreadPoolExecutor(1) as pool:
            occlusion = Occlusion(
                patch=manifest.tokens.patch,
                batcher=backend.batcher,
                model=backend.model(),
                cpu_pool=pool,
                lifecycle=backend.lifecycle,
            )
            of_objects = Masks.of(masks, manifest) if masks else None
            yield _Judge(backend=backend, occlusion=occlusion, scoring=Scoring.of(manifest), masks=of_objects)
    finally:
        backend.stop()


@dataclass(frozen=True, kw_only=True)
class _Judge:
    backend: Backend
    occlusion: Occlusion
    scoring: Scoring
    masks: Masks | None

    async def judged(self, file: Path, name: Path) -> JudgedImage:
        manifest = self.backend.bundle.manifest
        image = await self.backend.preprocessor.prepare(Upload([read_file(file)]), thumbnail=True)
        on_object = self.masks.on_object(name, image.size) if self.masks else None
        explained = Maps.of(await self.backend.batcher.run("explain", image.pixels))
        index, score = self.scoring.best(explained.logits)

        async def logits(covered: Patches, fill: Fill) -> Logits:
            """(n, classes)"""
            return np.array(await self.occlusion.run(image.pixels, covered, np.asarray, fill=fill))

        async def scores(covered: Patches, fill: Fill) -> Numbers:
            return np.array([self.scoring.scores(of_image)[index] for of_image in await logits(covered, fill)])

        maps = {}
        for title, way in WAYS.items():
            if way.method == RANDOM:
                maps[title] = seeded(image.pixels.tobytes()).random(manifest.tokens.grid, dtype=np.float32)
            elif way.method == MEASURED:
                maps[title] = await self._measured(logits, index)
            else:
                maps[title] = choose(
                    explained, manifest, Choice.model_validate({"method": way.method, "layer": way.layer})
                ).values
        return JudgedImage(
            file=file,
            label=manifest.labels[index],
            score=score,
            image=image,
            maps=maps,
            areas=await areas([*maps.values()], scores),
            on_object=on_object,
        )

    async def _measured(self, logits: Callable[[Patches, Fill], Awaitable[Logits]], index: int) -> Values:
        masks = MeasuredMasks.of(self.backend.bundle.manifest.tokens.grid, PASSES)
        found = np.empty((PASSES, len(self.scoring.labels)))
        for fill in FILLS:
            rows = np.array(masks.fills) == fill
            found[rows] = await logits(masks.covered[rows], fill)
        return measure(log_odds(found, self.scoring, index), masks).values
