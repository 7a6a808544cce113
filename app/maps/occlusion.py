"""Runs an image with some patches covered, as if they were not there, behind ordinary requests.

Occlusion: Zeiler and Fergus 2014 (arXiv 1311.2901).
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageFilter

from app.errors import DeadlineExceeded, Overloaded, Unavailable
from app.inference.batcher import Batcher
from app.inference.engine import Outputs
from app.inference.model import Model
from app.lifecycle import STOPPING, Lifecycle

Fill = Literal["mean", "black", "gray", "blur"]
GRAY = 128
MAX_IN_WORK = 2  # calls of `run`; more are refused

T = TypeVar("T")


@dataclass(kw_only=True)
class Occlusion:
    """Takes no place from `Admission`, so no image is refused because of covered ones.

    All calls together have one batch in the queue at a time, so an ordinary image waits for at most that one.
    """

    patch: int  # its side in pixels
    batcher: Batcher
    model: Model
    cpu_pool: Executor | None  # None: that of the event loop
    lifecycle: Lifecycle
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _in_work: int = field(default=0, init=False)

    async def run(
        self,
        pixels: npt.NDArray[np.uint8],
        covered: npt.NDArray[np.bool_],
        read: Callable[[Outputs], T],
        *,
        fills: Sequence[Fill],
        deadline: float = math.inf,
    ) -> list[T]:
        """What `read` makes of the lean graph's outputs for each image: `pixels` (height, width, 3) with one of the
        `fills` (images,) in place of the patches that a row of `covered` (images, patches) says.

        Raises Overloaded at once when MAX_IN_WORK calls are in work; DeadlineExceeded at `deadline`, in seconds of
        time.monotonic, or at once where it would take twice the time until then; and Unavailable, even halfway, when
        the service stops: it does not wait for so long a piece of work. Images that wait for the model leave its queue;
        a batch that it has begun is finished.
        """
        if self._in_work == MAX_IN_WORK:
            raise Overloaded("Patches of other images are being covered. Send this request again in a moment.")
        self._in_work += 1
        try:
            async with asyncio.timeout(deadline - time.monotonic()):
                self._check_time(len(covered), deadline)
                return [read(answer) async for answer in self._answers(pixels, covered, fills, deadline)]
        except TimeoutError:
            raise DeadlineExceeded from None
        finally:
            self._in_work -= 1

    def _check_time(self, images: int, deadline: float) -> None:
        """Raises DeadlineExceeded."""
        at_once = self.model.best_batch("classify")
        needed_s = math.ceil(images / at_once) * self.model.expected("classify", at_once)
        if needed_s > 2 * (deadline - time.monotonic()):
            raise DeadlineExceeded(
                f"This needs {images} forward passes, about {needed_s:.0f} s. "
                "Ask for fewer passes, steps, random_orders or random_sets."
            )

    async def _answers(
        self, pixels: npt.NDArray[np.uint8], covered: npt.NDArray[np.bool_], fills: Sequence[Fill], deadline: float
    ) -> AsyncIterator[Outputs]:
        """Of each image, in order."""
        in_pool = partial(asyncio.get_running_loop().run_in_executor, self.cpu_pool)
        under = {fill: await in_pool(partial(filled, pixels, fill, patch=self.patch)) for fill in set(fills)}
        while len(covered):
            if self.lifecycle.draining:
                raise Unavailable(STOPPING)
            count = self.model.best_batch("classify")
            unders = np.stack([under[fill] for fill in fills[:count]])
            images = await in_pool(partial(occluded, pixels, unders, covered[:count], patch=self.patch))
            covered, fills = covered[count:], fills[count:]
            async with self._turn:
                runs = (self.batcher.run("classify", image, deadline=deadline) for image in images)
                answers = await asyncio.gather(*runs, return_exceptions=True)  # none runs on after the turn
            for answer in answers:
                if isinstance(answer, BaseException):
                    raise answer
                yield answer


def filled(pixels: npt.NDArray[np.uint8], fill: Fill, *, patch: int) -> npt.NDArray[np.uint8]:
    """What covers the image (height, width, 3): its mean colour, black, mid-gray, or the image itself blurred.

    The blur is a Gaussian whose standard deviation is one patch of `patch` pixels.
    """
    if fill == "blur":
        return np.asarray(Image.fromarray(pixels).filter(ImageFilter.GaussianBlur(patch)))
    colors: dict[str, Any] = {"mean": np.rint(pixels.mean(axis=(0, 1))), "black": 0, "gray": GRAY}
    return np.full_like(pixels, colors[fill])


def occluded(
    pixels: npt.NDArray[np.uint8], filled: npt.NDArray[np.uint8], covered: npt.NDArray[np.bool_], *, patch: int
) -> npt.NDArray[np.uint8]:
    """Images (n, height, width, 3) that show `filled`, of all or of each, in place of `pixels` where patches are
    `covered` (n, patches).
    """
    rows, columns = pixels.shape[0] // patch, pixels.shape[1] // patch
    mask = covered.reshape(-1, rows, columns, 1).repeat(patch, axis=1).repeat(patch, axis=2)
    return np.where(mask, filled, pixels)
