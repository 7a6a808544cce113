"""app/inference/batcher.py without threads: what waits, what is taken, and who is answered."""

import asyncio
import math
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from app.bundle import GRAPHS
from app.errors import DeadlineExceeded, Unavailable
from app.inference.batcher import Batch, Batcher, Ticket, answer
from app.inference.engine import NOTHING_ASKED
from app.lifecycle import STOPPING


def model_of(side_by_side: int = 1, largest: int = 2) -> Any:
    """A model that runs so many images at once."""
    engine = SimpleNamespace(side_by_side=side_by_side, layout=GRAPHS)
    return SimpleNamespace(engine=engine, largest=dict.fromkeys(GRAPHS, largest), expected=lambda graph: 5.0)


MODEL, SIDE_BY_SIDE = model_of(), model_of(side_by_side=2, largest=1)


class Callers:
    """Images with the numbers 0, 1, 2 and so on as their pixels, and who waits for them."""

    def __init__(self) -> None:
        self.batcher = Batcher()
        self.tasks: list[asyncio.Task] = []
        self.taken: list[Batch] = []

    async def put(self, *graphs: str, deadline: float = math.inf) -> None:
        for graph in graphs:
            pixels = np.full((2, 2, 3), len(self.tasks), np.uint8)
            self.tasks.append(asyncio.create_task(self.batcher.run(graph, pixels, deadline=deadline)))
        await asyncio.sleep(0)

    def take(self, model=MODEL) -> list[int]:
        """The numbers of the images of the next batch. The batch before is done."""
        if self.taken:
            self.batcher.done(self.taken.pop())
        return self.take_beside(model)

    def take_beside(self, model=MODEL) -> list[int]:
        """The same while others still run."""
        self.taken.append(self.batcher.take(model))
        return [int(ticket.pixels[0, 0, 0]) for ticket in self.taken[-1].tickets]

    async def errors(self) -> list[BaseException | None]:
        """What each caller gets; None while there is no answer."""
        for _ in range(2):  # the answer reaches the loop, and then the caller
            await asyncio.sleep(0)
        return [task.exception() if task.done() and not task.cancelled() else None for task in self.tasks]


@pytest.fixture
def callers() -> Callers:
    return Callers()


async def waiting(call, *arguments) -> asyncio.Task:
    """A call that has to wait in another thread."""
    task = asyncio.create_task(asyncio.to_thread(call, *arguments))
    await asyncio.sleep(0.05)
    assert not task.done()
    return task


async def test_a_batch_has_the_graph_of_the_oldest_image_and_the_size_that_pays(callers):
    await callers.put("explain", "classify", "explain", "explain", "classify")
    assert callers.take() == [0, 2]
    assert callers.batcher.waiting == 3
    assert callers.take() == [1, 4]
    assert (callers.taken[0].graph, callers.taken[0].beside) == ("classify", False)
    assert callers.take() == [3]
    assert callers.batcher.waiting == 0


async def test_a_failure_answers_all_images_that_wait_or_run(callers):
    await callers.put(*["classify"] * 5)
    callers.take()
    callers.take()  # the first two have been answered before
    callers.batcher.fail("It broke.")
    assert [str(error) for error in await callers.errors()] == ["None", "None", *["It broke."] * 3]
    assert callers.batcher.take(MODEL) is None
    callers.batcher.close()  # does not hide the failure
    await callers.put("classify")
    assert str((await callers.errors())[-1]) == "It broke."


async def test_images_are_taken_side_by_side(callers):
    await callers.put("classify", "classify", "classify")
    assert [callers.take_beside(SIDE_BY_SIDE) for _ in range(2)] == [[0], [1]]
    callers.batcher.done(callers.taken[0])
    assert callers.take_beside(SIDE_BY_SIDE) == [2]  # alone in the queue, but beside the second
    callers.batcher.fail("It broke.")
    assert [str(error) for error in await callers.errors()] == ["None", "It broke.", "It broke."]


async def test_nothing_is_taken_beside_a_run_on_all_cores_and_that_is_not_begun_beside_others(callers):
    await callers.put("classify")
    assert callers.take(SIDE_BY_SIDE) == [0]
    await callers.put("classify", "classify")
    beside = await waiting(callers.batcher.take, SIDE_BY_SIDE)
    callers.batcher.done(callers.taken[0])
    assert (await beside).beside
    on_all_cores = await waiting(callers.batcher.take, MODEL)
    callers.batcher.done(beside.result())
    assert not (await on_all_cores).beside


async def test_a_closed_batcher_gives_out_waiting_images_and_then_ends(callers):
    await callers.put("classify")
    callers.batcher.close()
    await callers.put("classify")
    refused = (await callers.errors())[1]
    assert isinstance(refused, Unavailable)
    assert str(refused) == STOPPING
    assert callers.take() == [0]
    assert callers.batcher.take(MODEL) is None


async def test_late_and_cancelled_images_are_not_taken(callers):
    await callers.put("classify", deadline=time.monotonic() + 4)
    await callers.put("explain")
    await callers.put("classify", deadline=time.monotonic() + 60)
    callers.tasks[1].cancel()
    await asyncio.sleep(0)
    assert callers.take() == [2]
    assert isinstance((await callers.errors())[0], DeadlineExceeded)


@pytest.fixture
def batcher(callers, monkeypatch) -> Batcher:
    """That of the callers, which wants a self-test at once, and the next one after the ordinary time."""
    monkeypatch.setattr("app.inference.batcher.SELF_TEST_S", 0.0)
    callers.batcher = Batcher()
    monkeypatch.undo()
    return callers.batcher


async def test_a_self_test_follows_a_while_without_images_and_nothing_is_taken_during_it(callers, batcher):
    test = batcher.take(MODEL)
    assert (test.graph, test.tickets) == ("explain", [])
    batch = await waiting(batcher.take, MODEL)
    await callers.put("classify")
    await asyncio.sleep(0.05)
    assert not batch.done()
    batcher.done(test)
    assert (await batch).tickets


def next_test(batcher: Batcher) -> Batch:
    """The batch before is done."""
    for batch in batcher.running:
        batcher.done(batch)
    test = batcher.take(SIDE_BY_SIDE)
    assert not test.tickets
    return test


def test_every_way_to_run_images_is_tested_in_turn(batcher, monkeypatch):
    monkeypatch.setattr("app.inference.batcher.SELF_TEST_S", 0.0)
    tests = [(test.graph, test.beside) for test in (next_test(batcher) for _ in range(10))]
    assert tests[:5] == tests[5:]
    alone = {(graph, False) for graph in GRAPHS}
    assert set(tests) == {*alone, ("classify", True), ("tokens", True)}


async def test_images_are_taken_beside_a_self_test_that_has_its_share_of_the_cores(callers, batcher, monkeypatch):
    monkeypatch.setattr("app.inference.batcher.SELF_TEST_S", 0.0)
    while not next_test(batcher).beside:
        pass
    await callers.put("classify", "classify")
    assert callers.take_beside(SIDE_BY_SIDE) == [0]


async def test_tokens_share_the_cores_with_labels_and_are_never_in_one_batch_with_them(callers, batcher):
    await callers.put("classify", "tokens", "classify")
    assert [callers.take_beside(SIDE_BY_SIDE) for _ in range(2)] == [[0], [1]]
    for batch in batcher.running:
        batcher.done(batch)
    await callers.put("tokens", "classify", "tokens")
    assert callers.take_beside(MODEL) == [2, 4]


async def test_maps_wait_for_all_cores_and_their_run_is_alone(callers):
    await callers.put("classify", "classify", "explain")
    assert callers.take_beside(SIDE_BY_SIDE) == [0]
    assert callers.take_beside(SIDE_BY_SIDE) == [1]
    maps = await waiting(callers.batcher.take, SIDE_BY_SIDE)
    for batch in callers.taken:
        callers.batcher.done(batch)
    assert (await maps).graph == "explain"
    await callers.put("classify")
    after = await waiting(callers.batcher.take, SIDE_BY_SIDE)
    callers.batcher.done(maps.result())
    assert (await after).tickets


@pytest.mark.parametrize("images", [0, 1])
async def test_an_image_goes_before_a_self_test_and_either_puts_the_next_one_off(callers, batcher, images):
    await callers.put(*["classify"] * images)
    work = batcher.take(MODEL)
    assert len(work.tickets) == images
    batcher.done(work)
    test = await waiting(batcher.take, MODEL)
    batcher.close()
    assert await test is None


@pytest.mark.parametrize("model", [MODEL, SIDE_BY_SIDE])
async def test_under_steady_load_a_self_test_takes_the_place_of_one_run(callers, monkeypatch, model):
    monkeypatch.setattr("app.inference.batcher.BUSY_TEST_S", 0.0)
    callers.batcher = Batcher()
    monkeypatch.undo()  # the next one is due much later
    await callers.put(*["classify"] * 3)
    test = callers.batcher.take(model)
    assert not test.tickets
    callers.batcher.done(test)
    assert callers.batcher.take(model).tickets


def test_no_image_is_answered_after_the_event_loop_has_closed(caplog):
    loop = asyncio.new_event_loop()
    ticket = Ticket(
        graph="classify",
        pixels=None,
        asked=NOTHING_ASKED,
        deadline=math.inf,
        future=loop.create_future(),
        queued=0.0,
    )
    loop.close()
    answer([ticket], [Unavailable("It broke.")])
    assert "dropped 1 answers" in caplog.text
