"""Runs deletion and insertion of a map on the served model, behind ordinary requests."""

import asyncio
import math
import time
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import partial

import numpy as np
import numpy.typing as npt

from app.errors import DeadlineExceeded, Overloaded, Unavailable
from app.inference.batcher import Batcher
from app.inference.model import Model
from app.inference.scoring import Scoring
from app.lifecycle import STOPPING, Lifecycle
from app.maps.faithfulness import Curve, Fill, Trial, cover, filled

MAX_IN_WORK = 2  # verifications; more are refused


class Verifier:
    """Takes no place from `Admission`, so no image is refused because of a verification.

    All verifications together have one batch in the queue at a time, so an ordinary image waits for at most that one.
    """

    def __init__(
        self,
        *,
        patch: int,
        scoring: Scoring,
        batcher: Batcher,
        model: Model,
        cpu_pool: Executor,
        lifecycle: Lifecycle,
    ) -> None:
        """`patch` is the side of a patch in pixels."""
        self._patch = patch
        self._scoring = scoring
        self._batcher = batcher
        self._model = model
        self._cpu_pool = cpu_pool
        self._lifecycle = lifecycle
        self._in_work = 0
        self._turn = asyncio.Lock()

    async def verify(
        self,
        pixels: npt.NDArray[np.uint8],
        values: npt.NDArray[np.float32],
        *,
        index: int,
        fill: Fill,
        steps: int,
        random_orders: int,
        seed: str,
        deadline: float = math.inf,
    ) -> tuple[Curve, Curve]:
        """Deletion and insertion of class `index` for a map (rows, columns) of `pixels` (height, width, 3).

        Raises Overloaded at once when MAX_IN_WORK verifications are in work; DeadlineExceeded at `deadline`, in seconds
        of time.monotonic; and Unavailable, even halfway, when the service stops: it does not wait for so long a piece
        of work. Images that wait for the model leave its queue; a batch that it has begun is finished.
        """
        with self._admit():
            try:
                async with asyncio.timeout(deadline - time.monotonic()):
                    planned = partial(Trial.of, values, steps=steps, random_orders=random_orders, seed=seed)
                    trial = await asyncio.get_running_loop().run_in_executor(self._cpu_pool, planned)
                    found = await self._scores(trial, pixels, index=index, fill=fill, deadline=deadline)
            except TimeoutError:
                raise DeadlineExceeded from None
            return trial.curves(found)

    async def _scores(
        self, trial: Trial, pixels: npt.NDArray[np.uint8], *, index: int, fill: Fill, deadline: float
    ) -> npt.NDArray[np.float64]:
        """Scores (images,) of all images of the trial."""
        loop = asyncio.get_running_loop()
        under = await loop.run_in_executor(self._cpu_pool, partial(filled, pixels, fill, patch=self._patch))
        found: list[float] = []
        while len(found) < len(trial.covered):
            if self._lifecycle.draining:
                raise Unavailable(STOPPING)
            chunk = trial.covered[len(found) :][: self._model.best_batch("classify")]
            images = await loop.run_in_executor(self._cpu_pool, partial(cover, pixels, under, chunk, patch=self._patch))
            async with self._turn:
                runs = (self._batcher.run("classify", image, deadline=deadline) for image in images)
                answers = await asyncio.gather(*runs, return_exceptions=True)  # none runs on after the turn
            for answer in answers:
                if isinstance(answer, BaseException):
                    raise answer
                found.append(float(self._scoring.scores(answer["logits"])[index]))
        return np.array(found)

    @contextmanager
    def _admit(self) -> Iterator[None]:
        if self._in_work == MAX_IN_WORK:
            raise Overloaded("Other maps are being verified. Send this request again in a moment.")
        self._in_work += 1
        try:
            yield
        finally:
            self._in_work -= 1
