"""app/batcher.py against an engine that can be held and watched."""

import asyncio
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.batcher import Batcher
from app.errors import Overloaded


class FakeEngine:
    """Answers each image with its first pixel; `gate` holds it in a run."""

    def __init__(self, largest: int = 4) -> None:
        self.largest = largest
        self.batches: list[tuple[str, list[int]]] = []
        self.threads: set[int] = set()
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()

    def opened(self):
        self.threads.add(threading.get_ident())
        return self

    def best_batch(self, graph):
        return self.largest

    def run(self, graph, images):
        images = np.stack(images)
        self.threads.add(threading.get_ident())
        self.batches.append((graph, images[:, 0, 0, 0].tolist()))
        self.entered.set()
        assert self.gate.wait(10)
        if (images == 255).any():
            raise RuntimeError("poison")
        return {"logits": images[:, 0, 0, :1].astype(np.float32)}


def image(value: int) -> np.ndarray:
    return np.full((2, 2, 3), value, dtype=np.uint8)


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


def run(engine, scenario, **limits):
    """Run `scenario(batcher)` on an event loop; the batcher is stopped afterwards."""

    async def main():
        batcher = Batcher(**{"max_images": 100, **limits})
        assert batcher.start(engine.opened) is engine
        try:
            return await asyncio.wait_for(scenario(batcher), 20)
        finally:
            engine.gate.set()
            await asyncio.to_thread(batcher.stop)

    return asyncio.run(main())


async def held(engine, batcher):
    """Occupy the engine, so that what follows has to wait."""
    engine.gate.clear()
    first = asyncio.ensure_future(batcher.run("classify", image(0)))
    await asyncio.to_thread(engine.entered.wait, 10)
    return first


def test_what_arrives_during_a_run_shares_the_next(engine):
    async def scenario(batcher):
        first = await held(engine, batcher)
        rest = [asyncio.ensure_future(batcher.run("classify", image(v))) for v in range(1, 7)]
        await asyncio.sleep(0)
        engine.gate.set()
        await asyncio.gather(first, *rest)

    run(engine, scenario)
    assert engine.batches == [("classify", [0]), ("classify", [1, 2, 3, 4]), ("classify", [5, 6])]
    assert len(engine.threads) == 1


def test_an_engine_that_does_not_open_is_told_to_the_caller():
    def broken():
        raise OSError("no weights")

    batcher = Batcher(max_images=1)
    with pytest.raises(OSError, match="no weights"):
        batcher.start(broken)
    batcher.stop()


def test_a_lone_image_runs_at_once(engine):
    async def scenario(batcher):
        return await batcher.run("classify", image(9))

    assert run(engine, scenario)["logits"].tolist() == [9]
    assert engine.batches == [("classify", [9])]


def test_graphs_do_not_mix(engine):
    async def scenario(batcher):
        first = await held(engine, batcher)
        rest = [asyncio.ensure_future(batcher.run("explain" if v % 2 else "classify", image(v))) for v in range(1, 6)]
        await asyncio.sleep(0)
        engine.gate.set()
        await asyncio.gather(first, *rest)

    run(engine, scenario)
    assert engine.batches[1:] == [("explain", [1, 3, 5]), ("classify", [2, 4])]


@settings(max_examples=25, deadline=None)
@given(values=st.lists(st.integers(0, 254), min_size=1, max_size=40), max_batch=st.integers(1, 9))
def test_every_answer_belongs_to_its_question(values, max_batch):
    engine = FakeEngine(max_batch)

    async def scenario(batcher):
        return await asyncio.gather(*(batcher.run("classify", image(v)) for v in values))

    answers = run(engine, scenario)
    assert [int(a["logits"][0]) for a in answers] == values
    assert max(len(batch) for _, batch in engine.batches) <= max_batch


def test_whoever_leaves_the_queue_costs_nothing(engine):
    async def scenario(batcher):
        first = await held(engine, batcher)
        stays = asyncio.ensure_future(batcher.run("classify", image(1)))
        leaves = asyncio.ensure_future(batcher.run("classify", image(2)))
        await asyncio.sleep(0)
        leaves.cancel()
        await asyncio.sleep(0)
        engine.gate.set()
        await asyncio.gather(first, stays)

    run(engine, scenario)
    assert engine.batches[1:] == [("classify", [1])]


def test_a_failed_batch_fails_its_images_and_no_others(engine):
    async def scenario(batcher):
        with pytest.raises(RuntimeError, match="poison"):
            await batcher.run("classify", image(255))
        return await batcher.run("classify", image(3))

    assert run(engine, scenario)["logits"].tolist() == [3]


def test_a_full_queue_answers_at_once_and_places_come_back(engine):
    async def scenario(batcher):
        with batcher.admit(3):
            with pytest.raises(Overloaded):
                batcher.admit(2).__enter__()
            with batcher.admit(1):
                pass
        with batcher.admit(4):
            pass

    run(engine, scenario, max_images=4)


def test_stopping_answers_what_waits_and_refuses_what_comes(engine):
    async def scenario(batcher):
        first = await held(engine, batcher)
        second = asyncio.ensure_future(batcher.run("classify", image(1)))
        await asyncio.sleep(0)
        stopped = asyncio.ensure_future(asyncio.to_thread(batcher.stop))
        await asyncio.sleep(0.05)
        with pytest.raises(Overloaded):
            await batcher.run("classify", image(2))
        engine.gate.set()
        answers = await asyncio.gather(first, second)
        await stopped
        return [a["logits"].tolist() for a in answers]

    assert run(engine, scenario) == [[0], [1]]
