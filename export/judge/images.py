"""Every map that a bundle offers of an image, and how faithful each is, by the service's own parts."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.backend import Backend
from app.errors import InferenceFailed, NoClasses, UnsupportedType, UnusableImage
from app.images.preprocess import PreprocessedImage
from app.images.source import read_file
from app.images.upload import Upload
from app.inference.engine import Outputs
from app.inference.scoring import Scoring
from app.maps.attention import choose
from app.maps.choice import Choice
from app.maps.faithfulness import Numbers, seeded
from app.maps.measurement import Measurement
from app.maps.occlusion import Fill, Occlusion
from app.maps.record import Maps
from app.settings import Settings
from export.judge.areas import areas
from export.judge.masks import Masks, Patches
from export.messages import warn
from model.progress import track

AT_ONCE = 2  # images
WAYS = {  # how a map is made, by its title; None: by chance
    "class token (last layer)": Choice(method="class_token"),
    "class token (mean of layers)": Choice(method="class_token", layer="mean"),
    "rollout": Choice(method="rollout"),
    "evidence": Choice(method="evidence"),
    "positive evidence": Choice(method="positive_evidence"),
    "measured": Choice(method="measured"),
    "random": None,
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
    with _opened(bundle, masks) as judge:
        return asyncio.run(_judged(judge, images))


async def _judged(judge: "_Judge", images: Mapping[Path, Path]) -> list[JudgedImage]:
    """Two at once: while the covered images of one are prepared, the model has those of the other."""
    places = asyncio.Semaphore(AT_ONCE)

    async def one(name: Path, file: Path) -> JudgedImage | None:
        async with places:
            try:
                return await judge.judged(file, name)
            except (UnsupportedType, UnusableImage, InferenceFailed) as error:
                warn(f"{file} is skipped: {error.detail}")
            except OSError as error:
                warn(f"{file} is skipped: {error.strerror or error}")
        return None

    tasks = [asyncio.create_task(one(name, file)) for name, file in images.items()]
    found = [await task for task in track(tasks, "judging maps", of=len(tasks))]
    return [image for image in found if image]


@contextmanager
def _opened(bundle: Path, masks: Path | None) -> Iterator["_Judge"]:
    backend = Backend(settings=Settings(bundle=bundle))
    try:
        manifest = backend.bundle.manifest
        if not manifest.labels:
            raise NoClasses
        with ThreadPoolExecutor(1) as pool:
            occlusion = partial(
                Occlusion,
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
    occlusion: Callable[[], Occlusion]  # of one image: each has a batch in the queue
    scoring: Scoring
    masks: Masks | None

    async def judged(self, file: Path, name: Path) -> JudgedImage:
        manifest = self.backend.bundle.manifest
        image = await self.backend.preprocessor.prepare(Upload([read_file(file)]), thumbnail=True)
        on_object = self.masks.on_object(name, image.size) if self.masks else None
        explained = Maps.of(await self.backend.batcher.run("explain", image.pixels))
        index, score = self.scoring.best(explained.logits)
        occlusion = self.occlusion()

        async def scores(covered: Patches, fill: Fill) -> Numbers:
            read = partial(self._score, index)
            return np.array(await occlusion.run(image.pixels, covered, read, fills=[fill] * len(covered)))

        measurement = Measurement(occlusion=occlusion, manifest=manifest, scoring=self.scoring)
        maps = {title: await self._map(choice, explained, image, index, measurement) for title, choice in WAYS.items()}
        return JudgedImage(
            file=file,
            label=manifest.labels[index],
            score=score,
            image=image,
            maps=maps,
            areas=await areas([*maps.values()], scores),
            on_object=on_object,
        )

    def _score(self, index: int, answer: Outputs) -> float:
        return float(self.scoring.scores(answer["logits"])[index])

    async def _map(
        self,
        choice: Choice | None,
        explained: Maps,
        image: PreprocessedImage,
        index: int,
        measurement: Measurement,
    ) -> Values:
        manifest = self.backend.bundle.manifest
        if choice is None:
            return seeded(image.pixels.tobytes()).random(manifest.tokens.grid, dtype=np.float32)
        if choice.method == "measured":
            (measured,) = await measurement.maps(image.pixels, choice, [index])
            return measured.values
        return choose(explained, manifest, choice).values
