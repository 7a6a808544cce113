"""Runs an image with patches covered on the served model, behind ordinary requests."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from app.errors import DeadlineExceeded, Overloaded, Unavailable
from app.inference.batcher import Batcher
from app.inference.engine import Plan
from app.inference.model import Model
from app.inference.scoring import Logits
from app.lifecycle import STOPPING, Lifecycle
from app.maps.covering import Fill, cover, filled
from app.maps.faithfulness import Trial
from app.maps.what_if import WhatIf

MAX_IN_WORK = 2  # experiments; more are refused

Experiment = TypeVar("Experiment", Trial, WhatIf)
T = TypeVar("T")


@dataclass(kw_only=True)
class Coverer:
    """Takes no place from `Admission`, so no image is refused because of an experiment.

    All experiments together have one batch in the queue at a time, so an ordinary image waits for at most that one.
    """

    patch: int  # its side in pixels
    batcher: Batcher
    model: Model
    cpu_pool: Executor
    lifecycle: Lifecycle
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _in_work: int = field(default=0, init=False)

    async def run(
        self,
        pixels: npt.NDArray[np.uint8],
        design: Callable[[], Experiment],
        read: Callable[[Logits], T],
        *,
        fill: Fill,
        deadline: float = math.inf,
    ) -> tuple[Experiment, list[T]]:
        """What `design` returns in a thread, and what `read` makes of the logits (classes,) of each of its images.

        They show `pixels` (height, width, 3), with `fill` in place of the covered patches.

        Raises Overloaded at once when MAX_IN_WORK experiments are in work; DeadlineExceeded at `deadline`, in seconds
        of time.monotonic, or at once where it would take twice the time until then; and Unavailable, even halfway, when
        the service stops: it does not wait for so long a piece of work. Images that wait for the model leave its queue;
        a batch that it has begun is finished.
        """
        if self._in_work == MAX_IN_WORK:
            raise Overloaded("Patches of other images are being covered. Send this request again in a moment.")
        self._in_work += 1
        try:
            async with asyncio.timeout(deadline - time.monotonic()):
                experiment = await asyncio.get_running_loop().run_in_executor(self.cpu_pool, design)
                self._check_time(len(experiment.covered), deadline)
                logits = self._logits(pixels, experiment.covered, fill, deadline)
                return experiment, [read(of_image) async for of_image in logits]
        except TimeoutError:
            raise DeadlineExceeded from None
        finally:
            self._in_work -= 1

    def _check_time(self, images: int, deadline: float) -> None:
        """Raises DeadlineExceeded."""
        at_once = self.model.best_batch("classify")
        needed_s = math.ceil(images / at_once) * self.model.expected(Plan("classify", at_once))
        if needed_s > 2 * (deadline - time.monotonic()):
            raise DeadlineExceeded(
                f"This needs {images} forward passes, about {needed_s:.0f} s. "
                "Ask for fewer steps, random_orders or random_sets."
            )

    async def _logits(
        self, pixels: npt.NDArray[np.uint8], covered: npt.NDArray[np.bool_], fill: Fill, deadline: float
    ) -> AsyncIterator[Logits]:
        """The logits (classes,) of the image for each row of `covered` (images, patches)."""
        in_pool = partial(asyncio.get_running_loop().run_in_executor, self.cpu_pool)
        under = await in_pool(partial(filled, pixels, fill, patch=self.patch))
        while len(covered):
            if self.lifecycle.draining:
                raise Unavailable(STOPPING)
            count = self.model.best_batch("classify")
            images = await in_pool(partial(cover, pixels, under, covered[:count], patch=self.patch))
            covered = covered[count:]
            async with self._turn:
                runs = (self.batcher.run("classify", image, deadline=deadline) for image in images)
                answers = await asyncio.gather(*runs, return_exceptions=True)  # none runs on after the turn
            for answer in answers:
                if isinstance(answer, BaseException):
                    raise answer
                yield answer["logits"]
