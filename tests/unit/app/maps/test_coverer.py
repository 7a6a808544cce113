"""app/maps/coverer.py on an engine that can be held and watched: ordinary images come first."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from app.errors import DeadlineExceeded, InferenceFailed, Overloaded, Unavailable
from app.inference.batcher import Batcher
from app.inference.model import Plan
from app.inference.runner import Runner
from app.lifecycle import Lifecycle
from app.maps.coverer import MAX_IN_WORK, Coverer
from app.maps.faithfulness import Trial

PIXELS = np.full((64, 64, 3), 200, np.uint8)
ORDINARY = np.zeros((64, 64, 3), np.uint8)
VALUES = np.arange(64, dtype=np.float32).reshape(8, 8)
PASSES = 2 + 4 * 7  # the untouched and the fully covered image, and what lies between on four ways


class SteppingEngine:
    """Each run waits for a step. Answers as logit of class 1 the share of the image that is bright."""

    streams = 1

    def __init__(self) -> None:
        self.batches: list[list[int]] = []  # brightness of the images of each batch
        self.entered = threading.Semaphore(0)
        self.steps = threading.Semaphore(0)

    def best_batch(self, graph):
        return 4

    def plan(self, graph, waiting, *, others):
        return Plan(min(waiting, 4), 4)

    def expected(self, graph, images):
        return 0.0

    def run(self, graph, images, size, *, streamed):
        assert graph == "classify"
        images = np.stack(images)
        bright = (images[..., 0] == 200).mean(axis=(1, 2))
        self.batches.append([round(64 * share) for share in bright.tolist()])
        self.entered.release()
        assert self.steps.acquire(timeout=10)
        return {"logits": np.stack([0 * bright, bright], axis=1).astype(np.float32)}


@pytest.fixture
def engine() -> SteppingEngine:
    return SteppingEngine()


@pytest.fixture
def lifecycle() -> Lifecycle:
    return Lifecycle()


def run(engine, scenario, *, lifecycle=None):
    """Run `scenario(coverer, batcher)` on an event loop."""
    lifecycle = lifecycle or Lifecycle()

    async def main():
        batcher = Batcher()
        runner = Runner(batcher=batcher, lifecycle=lifecycle)
        runner.start(lambda: engine)
        with ThreadPoolExecutor(1) as pool:
            coverer = Coverer(patch=8, batcher=batcher, model=engine, cpu_pool=pool, lifecycle=lifecycle)
            try:
                return await asyncio.wait_for(scenario(coverer, batcher), 20)
            finally:
                engine.steps.release(1000)
                await asyncio.to_thread(runner.stop)

    return asyncio.run(main())


def verification(coverer, **options) -> asyncio.Future[tuple[Trial, list[float]]]:
    plan = partial(Trial.of, VALUES, steps=8, random_orders=2, seed="id")
    return asyncio.ensure_future(coverer.run(PIXELS, plan, lambda logits: logits[1], fill="black", **options))


async def entered(engine) -> None:
    await asyncio.to_thread(engine.entered.acquire, timeout=10)


def test_every_image_is_run_as_it_was_planned_and_read(engine):
    engine.steps.release(1000)
    trial, found = run(engine, lambda coverer, _: verification(coverer))
    assert found == pytest.approx(1 - trial.covered.mean(axis=1))
    assert max(map(len, engine.batches)) <= 4
    assert sum(map(len, engine.batches)) == PASSES


def test_an_ordinary_image_waits_for_one_batch_however_many_maps_are_verified(engine):
    async def scenario(coverer, batcher):
        verifications = [verification(coverer) for _ in range(MAX_IN_WORK)]
        await entered(engine)
        ordinary = asyncio.ensure_future(batcher.run("classify", ORDINARY))
        await asyncio.sleep(0.05)  # whatever else could get into the queue before it would by now
        engine.steps.release()
        await entered(engine)
        engine.steps.release()
        await ordinary
        assert not any(v.done() for v in verifications)
        engine.steps.release(1000)
        await asyncio.gather(*verifications)

    run(engine, scenario)
    assert 0 in engine.batches[1]


def test_a_service_that_stops_does_not_wait_for_it(engine, lifecycle):
    async def scenario(coverer, batcher):
        verifying = verification(coverer)
        await entered(engine)
        lifecycle.start_draining()
        engine.steps.release(1000)
        with pytest.raises(Unavailable):
            await verifying

    run(engine, scenario, lifecycle=lifecycle)
    assert len(engine.batches) == 1


def test_it_ends_at_its_deadline_and_its_place_is_free_again(engine):
    async def scenario(coverer, batcher):
        with pytest.raises(DeadlineExceeded):
            await verification(coverer, deadline=time.monotonic() + 0.2)
        engine.steps.release(1000)
        await batcher.run("classify", ORDINARY)
        assert len(engine.batches) == 2  # the one that had begun, and the ordinary image
        await asyncio.gather(*(verification(coverer) for _ in range(MAX_IN_WORK)))

    run(engine, scenario)


def test_one_too_many_is_refused_until_another_is_done(engine):
    async def scenario(coverer, batcher):
        verifications = [verification(coverer) for _ in range(MAX_IN_WORK)]
        await entered(engine)
        with pytest.raises(Overloaded):
            await verification(coverer)
        engine.steps.release(1000)
        await asyncio.gather(*verifications)
        await verification(coverer)

    run(engine, scenario)


def test_of_a_batch_that_fails_nothing_runs_on(engine):
    """An image fails at once, and the next verification waits for the others of its batch."""

    async def scenario(coverer, batcher):
        running, ran = 0, batcher.run

        async def run_one(graph, image, **options):
            nonlocal running
            running += 1
            try:
                if running == 2:
                    raise InferenceFailed
                return await ran(graph, image, **options)
            finally:
                running -= 1

        batcher.run = run_one
        verifying = verification(coverer)
        await entered(engine)
        assert not verifying.done()
        engine.steps.release(1000)
        with pytest.raises(InferenceFailed):
            await verifying
        assert running == 0

    run(engine, scenario)


def test_a_client_that_leaves_takes_its_images_along(engine):
    async def scenario(coverer, batcher):
        first = asyncio.ensure_future(batcher.run("classify", ORDINARY))
        await entered(engine)
        leaves = verification(coverer)
        await asyncio.sleep(0.05)
        leaves.cancel()
        await asyncio.wait([leaves])
        engine.steps.release(1000)
        await asyncio.gather(first, *(verification(coverer) for _ in range(MAX_IN_WORK)))

    run(engine, scenario)
    assert engine.batches[0] == [0]
    assert sum(map(len, engine.batches)) == 1 + MAX_IN_WORK * PASSES
