"""app/maps/coverer.py on a queue that can be held and watched: ordinary images come first."""

import asyncio
import math
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from app.errors import DeadlineExceeded, InferenceFailed, Overloaded, Unavailable
from app.maps.coverer import MAX_IN_WORK, Coverer
from app.maps.faithfulness import Trial

BATCH = 4
PIXELS = np.full((64, 64, 3), 200, np.uint8)
VALUES = np.arange(64, dtype=np.float32).reshape(8, 8)
PASSES = 2 + 4 * 7  # the untouched and the fully covered image, and what lies between on four ways


class FakeBatcher:
    """Answers as logit of class 1 the share of the image that is bright, once it is let go; or fails on some image."""

    def __init__(self) -> None:
        self.asked = self.queued = self.most = self.ran = 0
        self.fails_on = 0  # the first is number 1
        self.let_go = asyncio.Event()

    async def run(self, graph: str, image: np.ndarray, *, deadline: float) -> dict[str, np.ndarray]:
        assert graph == "classify"
        self.asked += 1
        self.queued += 1
        self.most = max(self.most, self.queued)
        try:
            if self.asked == self.fails_on:
                raise InferenceFailed
            await self.let_go.wait()
        finally:
            self.queued -= 1
        self.ran += 1
        return {"logits": np.array([0, (image == 200).mean()], np.float32)}


@pytest.fixture
def batcher() -> FakeBatcher:
    return FakeBatcher()


@pytest.fixture
def coverer(batcher, lifecycle) -> Iterator[Coverer]:
    model = SimpleNamespace(best_batch=lambda graph: BATCH, expected=lambda plan: 0.0)
    with ThreadPoolExecutor(1) as pool:
        yield Coverer(patch=8, batcher=batcher, model=model, cpu_pool=pool, lifecycle=lifecycle)


def verification(coverer: Coverer, **options) -> asyncio.Task[tuple[Trial, list[float]]]:
    design = partial(Trial.of, VALUES, steps=8, random_orders=2, seed=b"id")
    return asyncio.create_task(coverer.run(PIXELS, design, lambda logits: logits[1], fill="black", **options))


async def all_places(coverer: Coverer) -> None:
    await asyncio.gather(*(verification(coverer) for _ in range(MAX_IN_WORK)))


async def queued(batcher: FakeBatcher) -> None:
    while batcher.queued < BATCH:
        await asyncio.sleep(0.001)


async def test_every_image_is_run_as_it_was_planned_and_read(coverer, batcher):
    batcher.let_go.set()
    trial, found = await verification(coverer)
    assert found == pytest.approx(1 - trial.covered.mean(axis=1))
    assert batcher.ran == PASSES


async def test_what_cannot_end_in_time_is_not_begun(coverer, batcher):
    coverer.model.expected = lambda plan: 1.0
    with pytest.raises(DeadlineExceeded, match=f"This needs {PASSES} forward passes, about 8 s. Ask for fewer"):
        await verification(coverer, deadline=time.monotonic() + 3)
    assert batcher.asked == 0


async def test_one_batch_is_in_the_queue_however_many_maps_are_verified(coverer, batcher):
    """So an ordinary image waits for no more than that."""
    both = asyncio.ensure_future(all_places(coverer))
    await queued(batcher)
    await asyncio.sleep(0.05)  # whatever else could get into the queue would by now
    batcher.let_go.set()
    await both
    assert batcher.most == BATCH
    assert batcher.ran == MAX_IN_WORK * PASSES


async def test_a_service_that_stops_does_not_wait_for_it(coverer, batcher, lifecycle):
    verifying = verification(coverer)
    await queued(batcher)
    lifecycle.start_draining()
    batcher.let_go.set()
    with pytest.raises(Unavailable):
        await verifying
    assert batcher.ran == BATCH


@pytest.mark.parametrize("seconds", [1.0, math.inf], ids=["at its deadline", "when its client leaves"])
async def test_its_images_leave_the_queue_and_its_place_is_free_again(coverer, batcher, seconds):
    ends = verification(coverer, deadline=time.monotonic() + seconds)
    await queued(batcher)
    if seconds == math.inf:
        ends.cancel()
    await asyncio.wait([ends])
    assert ends.cancelled() or isinstance(ends.exception(), DeadlineExceeded)
    assert batcher.queued == 0
    batcher.let_go.set()
    await all_places(coverer)


async def test_one_too_many_is_refused_until_another_is_done(coverer, batcher):
    both = asyncio.ensure_future(all_places(coverer))
    await queued(batcher)
    with pytest.raises(Overloaded):
        await verification(coverer)
    batcher.let_go.set()
    await both
    await verification(coverer)


async def test_of_a_batch_that_fails_nothing_runs_on(coverer, batcher):
    """An image fails at once, and the next verification waits for the others of its batch."""
    batcher.fails_on = 2
    verifying = verification(coverer)
    while batcher.queued < BATCH - 1:
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.01)
    assert not verifying.done()
    batcher.let_go.set()
    with pytest.raises(InferenceFailed):
        await verifying
    assert batcher.queued == 0
