"""app/maps/occlusion.py on a queue that can be held and watched: ordinary images come first."""

import asyncio
import math
import operator
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from app.errors import DeadlineExceeded, InferenceFailed, Overloaded, Unavailable
from app.maps.occlusion import MAX_IN_WORK, Occlusion, filled, occluded

BATCH = 4
PIXELS = np.full((64, 64, 3), 200, np.uint8)
COVERED = np.tri(30, 64, dtype=bool)


class FakeBatcher:
    """Answers the share of the image that is bright, once it is let go; or fails on some image."""

    def __init__(self) -> None:
        self.asked = self.queued = self.most = self.ran = 0
        self.fails_on = 0  # the first is number 1
        self.let_go = asyncio.Event()

    async def run(self, graph: str, image: np.ndarray, *, deadline: float) -> dict[str, float]:
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
        return {"bright": (image == 200).mean()}


@pytest.fixture
def batcher() -> FakeBatcher:
    return FakeBatcher()


@pytest.fixture
def occlusion(batcher, lifecycle) -> Iterator[Occlusion]:
    model = SimpleNamespace(best_batch=lambda graph: BATCH, expected=lambda graph, images: 0.0)
    with ThreadPoolExecutor(1) as pool:
        yield Occlusion(patch=8, batcher=batcher, model=model, cpu_pool=pool, lifecycle=lifecycle)


def run(occlusion: Occlusion, **options) -> asyncio.Task[list[float]]:
    fills = ["black", "mean"] * (len(COVERED) // 2)  # the mean of a flat image is the image
    read = operator.itemgetter("bright")
    return asyncio.create_task(occlusion.run(PIXELS, COVERED, read, fills=fills, **options))


async def all_places(occlusion: Occlusion) -> None:
    await asyncio.gather(*(run(occlusion) for _ in range(MAX_IN_WORK)))


async def queued(batcher: FakeBatcher) -> None:
    while batcher.queued < BATCH:
        await asyncio.sleep(0.001)


async def test_every_image_is_run_covered_and_read(occlusion, batcher):
    batcher.let_go.set()
    assert await run(occlusion) == pytest.approx([1 - row.mean() if i % 2 == 0 else 1 for i, row in enumerate(COVERED)])
    assert batcher.ran == len(COVERED)


async def test_what_cannot_end_in_time_is_not_begun(occlusion, batcher):
    occlusion.model.expected = lambda graph, images: 1.0
    with pytest.raises(DeadlineExceeded, match="This needs 30 forward passes, about 8 s"):
        await run(occlusion, deadline=time.monotonic() + 3)
    assert batcher.asked == 0


async def test_one_batch_is_in_the_queue_however_many_images_are_covered(occlusion, batcher):
    """So an ordinary image waits for no more than that."""
    both = asyncio.ensure_future(all_places(occlusion))
    await queued(batcher)
    await asyncio.sleep(0.05)  # whatever else could get into the queue would by now
    batcher.let_go.set()
    await both
    assert batcher.most == BATCH
    assert batcher.ran == MAX_IN_WORK * len(COVERED)


async def test_a_service_that_stops_does_not_wait_for_it(occlusion, batcher, lifecycle):
    running = run(occlusion)
    await queued(batcher)
    lifecycle.start_draining()
    batcher.let_go.set()
    with pytest.raises(Unavailable):
        await running
    assert batcher.ran == BATCH


@pytest.mark.parametrize("seconds", [1.0, math.inf], ids=["at its deadline", "when its client leaves"])
async def test_its_images_leave_the_queue_and_its_place_is_free_again(occlusion, batcher, seconds):
    ends = run(occlusion, deadline=time.monotonic() + seconds)
    await queued(batcher)
    if seconds == math.inf:
        ends.cancel()
    await asyncio.wait([ends])
    assert ends.cancelled() or isinstance(ends.exception(), DeadlineExceeded)
    assert batcher.queued == 0
    batcher.let_go.set()
    await all_places(occlusion)


async def test_one_too_many_is_refused_until_another_is_done(occlusion, batcher):
    both = asyncio.ensure_future(all_places(occlusion))
    await queued(batcher)
    with pytest.raises(Overloaded):
        await run(occlusion)
    batcher.let_go.set()
    await both
    await run(occlusion)


async def test_of_a_batch_that_fails_nothing_runs_on(occlusion, batcher):
    """An image fails at once, and the next run waits for the others of its batch."""
    batcher.fails_on = 2
    running = run(occlusion)
    while batcher.queued < BATCH - 1:
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.01)
    assert not running.done()
    batcher.let_go.set()
    with pytest.raises(InferenceFailed):
        await running
    assert batcher.queued == 0


SIDE = 2


def test_covering_a_patch_changes_its_pixels_alone():
    rng = np.random.default_rng(0)
    pixels = rng.integers(1, 255, (3 * SIDE, 5 * SIDE, 3), dtype=np.uint8)
    covered = np.zeros((2, 15), bool)
    covered[1, [7, 14]] = True  # row 1, column 2; row 2, column 4
    untouched, touched = occluded(pixels, np.zeros_like(pixels), covered, patch=SIDE)
    expected = pixels.copy()
    expected[2:4, 4:6] = expected[4:6, 8:10] = 0
    assert (untouched == pixels).all()
    assert (touched == expected).all()
    assert touched.dtype == np.uint8


def test_fills():
    pixels = np.zeros((4, 8, 3), np.uint8)
    pixels[:, 2:, 0] = 255
    assert (filled(pixels, "mean", patch=SIDE) == [191, 0, 0]).all()
    assert (filled(pixels, "black", patch=SIDE) == 0).all()
    assert (filled(pixels, "gray", patch=SIDE) == 128).all()
    blurred = filled(pixels, "blur", patch=SIDE)
    assert blurred.shape == pixels.shape
    assert 0 < blurred[0, 1, 0] < blurred[0, 2, 0] < 255
    assert (blurred[..., 1:] == 0).all()


def test_a_blur_is_as_wide_as_a_patch():
    edge = np.zeros((64, 64, 3), np.uint8)
    edge[:, 32:] = 255
    for patch in (4, 8):
        row = filled(edge, "blur", patch=patch)[32, :, 0] / 255
        assert row[32 + patch] == pytest.approx(0.84, abs=0.03)  # one standard deviation right of the edge
