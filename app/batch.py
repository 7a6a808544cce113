"""The numbers of the service without its web framework: for Ray Data, Daft, Spark, or a loop over files.

    classify = BatchClassifier("bundles/birds")
    rows = classify(Path("photos").glob("*.jpg"))

The same processes decode, the same engine runs, and the known answer is checked. One of these uses all cores that its
process may use.
"""

import asyncio
import os
import threading
from collections.abc import Coroutine, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Never, Self, TypeVar

import numpy as np
import numpy.typing as npt

from app.backend import Backend
from app.errors import InferenceFailed, InvalidParameter, ServiceError, UnfamiliarImage, UnsupportedType, UnusableImage
from app.images.source import Source, file_of
from app.images.upload import Upload
from app.inference.digits import listed
from app.inference.engine import MOST_LIKELY_CLASS, NO_DIRECTIONS, Asked, Outputs
from app.inference.phrases import NO_TOWER, PROMPT, Among, prompted
from app.inference.scoring import TOP_K, Prediction, Scoring
from app.inference.tokens import Which, arranged, array_for
from app.maps.attention import choose
from app.maps.attention_map import AttentionMap, Method
from app.maps.choice import Choice, check_choice, classes_for
from app.maps.direction import asked_for, check_directions, products
from app.maps.labels import index_of
from app.maps.measured import PASSES
from app.maps.measurement import Measurement
from app.maps.occlusion import MAX_IN_WORK, Occlusion
from app.maps.record import Maps
from app.settings import Settings

T = TypeVar("T")
OF_VECTORS = Choice(method="evidence")


class BatchFailed(RuntimeError):
    """No image can be classified here any more, or at the moment. Nothing is wrong with the images: start another
    process, and give it the same ones again.
    """


class BatchClassifier:
    """Lists of images in, lists of dicts out. Any thread may call it; several calls share batches.

    The `VIT_*` variables set the device, the limits and the rest, as for the service.
    """

    def __init__(
        self,
        bundle: str | Path | None = None,
        *,
        top_k: int = TOP_K,
        evidence: str | bool | None = None,
        measured: str | bool | None = None,
        passes: int = PASSES,
        vectors: npt.ArrayLike | None = None,
        tokens: Which | None = None,
        layer: int | None = None,
        labels: str | Sequence[str] = (),
        prompt: str = PROMPT,
    ) -> None:
        """The `bundle` is by default that of VIT_BUNDLE, or the demo. `evidence` adds the evidence map of a label, by
        its name or index, or with True of each image's top label. `vectors` (n, features) adds evidence for the inner
        product of the embedding with each, such as the unit embedding of another image. `measured` adds measured maps:
        of a label in the same way as `evidence`, and of each of the `vectors`, from the same `passes` of the model over
        each image. A model without labels has those of the vectors alone. `tokens` adds those of the patches, or
        all, after the final norm or after block `layer`, from 1. Predictions are among `labels`, a list or one text
        with commas between, where they are given: the text tower of the bundle reads them in the `prompt`.

        Takes seconds. Raises CannotStart when the bundle or the device cannot be used, NoClasses and InvalidParameter
        for maps, tokens and texts that this model does not have, ValueError for vectors of another length, for a
        `top_k` below 1, and for other `passes` than GET /attention takes.
        """
        if top_k < 1:
            raise ValueError("top_k has to be at least 1")
        settings = Settings(bundle=Path(bundle)) if bundle else Settings()
        self._top_k = top_k
        self._least_familiarity = settings.least_familiarity if settings.unfamiliar == "refuse" else 0.0
        self._backend = Backend(settings=settings)
        try:
            model = self._backend.model()
            manifest = self._manifest = self._backend.bundle.manifest
            self._scoring = Scoring.of(manifest)
            texts = labels.split(",") if isinstance(labels, str) else labels
            self._among = self._read(tuple(text.strip() for text in texts), prompt) if labels else None
            self._which = tokens
            self._array = array_for(manifest, layer) if tokens else None
            self._vectors = NO_DIRECTIONS if vectors is None else np.array(vectors, np.float32)
            self._asked = asked_for(self._vectors, manifest) if len(self._vectors) else []
            if len(self._vectors):
                check_directions(manifest)
                if self._vectors.shape[1:] != (manifest.features,):
                    raise ValueError(f"vectors have to be rows of {manifest.features} numbers")
            self._choice, self._measured = _choice("evidence", evidence), _choice("measured", measured, passes=passes)
            if self._measured and (manifest.labels or not self._asked):
                check_choice(self._measured, manifest)
            if self._choice:
                check_choice(self._choice, manifest)
                likely = [MOST_LIKELY_CLASS] * manifest.explains["classes"][0]
                self._explained = Asked(classes_for(self._choice, manifest.labels, likely))
            if self._measured and self._measured.label is not None:
                index_of(self._measured.label, manifest.labels, ())
            occlusion = Occlusion(
                patch=manifest.tokens.patch,
                batcher=self._backend.batcher,
                model=model,
                cpu_pool=None,
                lifecycle=self._backend.lifecycle,
            )
            self._measurement = Measurement(occlusion=occlusion, manifest=manifest, scoring=self._scoring)
        except BaseException:
            self._backend.stop()
            raise
        self._measuring = asyncio.Semaphore(MAX_IN_WORK)
        self._in_work = asyncio.Semaphore(settings.max_images_in_progress)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="batch", daemon=True)
        self._thread.start()
        self._process = os.getpid()
        self._watches = self._wait_for(self._watch())

    def __call__(self, images: Iterable[Source | None]) -> list[dict[str, Any]]:
        """A dict for each image, in order, all with the same keys. Images are the bytes of files, paths, PIL images or
        uint8 arrays (rows, columns, channels), and None stands for one that is missing:

        - `predictions`: at most `top_k` dicts of label, index and score, the most likely first, as in an answer of
          POST /classify; None without labels, and for an image that cannot be used
        - `embedding`: what the head reads, as POST /embed gives it; None for an image that cannot be used
        - `familiarity`, if the bundle knows its images, as in an answer; None for an image that cannot be decoded
        - `error`: why an image cannot be used, as in an answer (type, title, status, detail); None otherwise
        - `evidence`, if it was asked for: label, index, grid (rows, columns), values (row by row) and receipt
        - `vectors`, if they were given: of each the values (rows, columns) and a receipt, which adds up to the product;
          if measured maps were asked for, `measured` too, and its `spread`: of the product with the embedding at
          length 1, which for a vector of length 1 is the cosine
        - `tokens`, if they were asked for: float32 (rows, columns, features) of the patches, or (tokens, features)
        - `measured`, if it was asked for and the model has labels: as `evidence`, with `spread`, the standard error of
          each value, for the receipt

        Raises BatchFailed when the fault is none of an image's, OSError for a file that cannot be read, and TypeError
        for anything else.
        """
        return self._wait_for(self._rows([None if image is None else file_of(image) for image in images]))

    def close(self) -> None:
        """End its threads and processes, when no call is under way."""
        self._wait_for(self._unwatch())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._process = 0
        self._backend.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __reduce__(self) -> Never:
        raise TypeError("a BatchClassifier has threads and processes: make one in each process that uses it")

    def _wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        if self._process != os.getpid():  # a fork has the object, but neither its threads nor its processes
            work.close()
            raise BatchFailed("This BatchClassifier was closed, or made in another process: make one here.")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _read(self, labels: tuple[str, ...], prompt: str) -> Among:
        tower = self._backend.phrases.tower
        if tower is None:
            raise InvalidParameter(NO_TOWER)
        vectors = np.concatenate([tower.embed(prompted([label], prompt)) for label in labels])
        return Among.of(labels, vectors, self._manifest)

    async def _watch(self) -> list[asyncio.Task[None]]:
        watches = (self._backend.runner.watch(), self._backend.watch_weights())
        return [asyncio.create_task(watch) for watch in watches]

    async def _unwatch(self) -> None:
        for watch in self._watches:
            watch.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)
        await asyncio.get_running_loop().shutdown_default_executor()

    async def _rows(self, images: list[bytes | None]) -> list[dict[str, Any]]:
        return await asyncio.gather(*map(self._row, images))

    async def _row(self, image: bytes | None) -> dict[str, Any]:
        row: dict[str, Any] = {"predictions": None, "embedding": None, "error": None}
        if self._backend.familiarity:
            row["familiarity"] = None
        if self._choice:
            row["evidence"] = None
        if self._asked:
            row["vectors"] = None
        if self._which:
            row["tokens"] = None
        if self._measured and self._manifest.labels:
            row["measured"] = None
        try:
            if image is None:
                raise UnusableImage("The image is missing.")
            async with self._in_work:
                prepared = await self._backend.preprocessor.prepare(Upload([image]), thumbnail=False)
                run = partial(self._backend.batcher.run, pixels=prepared.pixels)
                outputs = {} if self._which is None else await run("tokens")
                shown: list[AttentionMap] = []
                for asked in self._asked:
                    outputs |= await run("explain", asked=asked)
                    shown += products(Maps.of(outputs), self._manifest, OF_VECTORS, asked.directions)
                if self._choice:
                    outputs |= await run("explain", asked=self._explained)
                outputs = outputs or await run("classify")
                row |= self._answer(outputs, shown)
                if self._measured:
                    async with self._measuring:
                        await self._measure(row, prepared.pixels, self._measured, outputs)
                return row
        except (UnsupportedType, UnusableImage, UnfamiliarImage, InferenceFailed) as error:
            return {**row, **error.members, "error": error.problem}
        except ServiceError as error:
            raise BatchFailed(error.detail) from None

    async def _measure(
        self, row: dict[str, Any], pixels: npt.NDArray[np.uint8], choice: Choice, outputs: Outputs
    ) -> None:
        labels = [int(outputs["logits"].argmax())] if self._manifest.labels else []
        of_vectors = [vector[np.newaxis] for vector in self._vectors]
        shown = await self._measurement.maps(pixels, choice, [*labels, *of_vectors])
        if labels:
            row["measured"] = _row_of(shown.pop(0))
        for vector, of_vector in zip(row.get("vectors", ()), shown, strict=True):
            vector |= {"measured": of_vector.values, "spread": of_vector.spread}

    def _answer(self, outputs: Outputs, of_vectors: list[AttentionMap]) -> dict[str, Any]:
        answer: dict[str, Any] = {"embedding": listed(outputs["embedding"])}
        best: list[Prediction] | None = None
        if self._among:
            logits = self._among.logits(outputs["embedding"])
            best = self._among.scoring.rank(logits, top_k=self._top_k)
        elif self._manifest.labels:
            best = self._scoring.rank(outputs["logits"], top_k=self._top_k)
        if best is not None:
            answer["predictions"] = [prediction.model_dump() for prediction in best]
        if self._backend.familiarity:
            answer["familiarity"] = self._backend.familiarity.of(outputs, least=self._least_familiarity)
        if self._choice:
            shown = choose(Maps.of(outputs), self._manifest, self._choice)
            answer["evidence"] = _row_of(shown)
        if self._asked:
            answer["vectors"] = [
                {"values": one.values, "receipt": one.receipt.model_dump(exclude_none=True)}
                for one in of_vectors
                if one.receipt
            ]
        if self._which and self._array:
            (answer["tokens"],) = arranged([outputs[self._array]], self._manifest, self._which)
        return answer


def _choice(method: Method, label: str | bool | None, **more: int) -> Choice | None:
    """None where no such map is asked for; True is the top label."""
    if label is None or label is False:
        return None
    return Choice.model_validate({"method": method, "label": None if label is True else str(label), **more})


def _row_of(shown: AttentionMap) -> dict[str, Any]:
    row: dict[str, Any] = {
        "label": shown.chosen.label,
        "index": shown.chosen.index,
        "grid": list(shown.values.shape),
        "values": listed(shown.values.ravel()),
    }
    if shown.spread is not None:
        row["spread"] = listed(shown.spread.ravel())
    if shown.receipt:
        row["receipt"] = shown.receipt.model_dump(exclude_none=True)
    return row
