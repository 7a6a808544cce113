"""app/inference/batcher.py without threads: what waits, what is taken, and who is answered."""

import asyncio
import math
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count

import numpy as np
import pytest

from app.errors import DeadlineExceeded, Unavailable
from app.inference.batcher import Batch, Batcher, SelfTest, Ticket, answer
from app.inference.model import Plan
from app.lifecycle import STOPPING


class FakeModel:
    """Plans two images at most, or on streams one beside others; `planned` says what it was asked."""

    def __init__(self, *, streams: bool = False) -> None:
        self.streams = streams
        self.planned: list[tuple[str, int]] = []

    def plan(self, graph: str, waiting: int, *, others: int) -> Plan:
        self.planned.append((graph, waiting))
        return Plan(1, streamed=waiting + others > 1) if self.streams else Plan(min(waiting, 2))

    def expected(self, graph: str, images: int) -> float:
        return 5.0


MODEL, STREAMS = FakeModel(), FakeModel(streams=True)


class Callers:
    """Images with the numbers 0, 1, 2 and so on as their pixels, and who waits for them."""

    def __init__(self, batcher: Batcher, loop: asyncio.AbstractEventLoop) -> None:
        self.batcher, self.loop = batcher, loop
        self.tasks: list[asyncio.Task] = []
        self.numbers = count()
        self.taken: list[Batch] = []

    def put(self, *graphs: str, deadline: float = math.inf) -> None:
        for graph in graphs:
            pixels = np.full((2, 2, 3), next(self.numbers), np.uint8)
            self.tasks.append(self.loop.create_task(self.batcher.run(graph, pixels, deadline=deadline)))
        self.turn()

    def turn(self) -> None:
        self.loop.run_until_complete(asyncio.sleep(0))

    def take(self, model=MODEL) -> list[int]:
        """The numbers of the images of the next batch. The batch before is done."""
        if self.taken:
            self.batcher.done(self.taken.pop())
        return self.take_beside(model)

    def take_beside(self, model=MODEL) -> list[int]:
        """The same while others still run."""
        self.taken.append(self.batcher.take(model))
        return [int(ticket.pixels[0, 0, 0]) for ticket in self.taken[-1].tickets]

    def errors(self) -> list[BaseException | None]:
        """What each caller gets; None while there is no answer."""
        self.turn()
        self.turn()
        return [task.exception() if task.done() and not task.cancelled() else None for task in self.tasks]

    async def leave(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


@pytest.fixture
def batcher() -> Batcher:
    return Batcher()


@pytest.fixture
def callers(batcher):
    loop = asyncio.new_event_loop()
    callers = Callers(batcher, loop)
    yield callers
    loop.run_until_complete(callers.leave())
    loop.close()


@contextmanager
def waiting(call, *arguments) -> Iterator[Future]:
    """A call that has to wait in another thread, until something in the block lets it go on."""
    with ThreadPoolExecutor(1) as runner:
        result = runner.submit(call, *arguments)
        with pytest.raises(TimeoutError):
            result.result(0.05)
        yield result
        result.result(10)


def test_a_batch_has_the_graph_of_the_oldest_image_and_the_size_that_pays(batcher, callers):
    """The model plans with all images that wait for that graph."""
    model = FakeModel()
    callers.put("explain", "classify", "explain", "explain", "classify")
    assert callers.take(model) == [0, 2]
    assert batcher.waiting == 3
    assert callers.take(model) == [1, 4]
    assert (callers.taken[0].graph, callers.taken[0].plan) == ("classify", Plan(2))
    assert callers.take(model) == [3]
    assert batcher.waiting == 0
    assert model.planned == [("explain", 3), ("classify", 2), ("explain", 1)]


def test_a_failure_answers_all_images_that_wait_or_run(batcher, callers):
    callers.put(*["classify"] * 5)
    callers.take()
    callers.take()  # the first two have been answered before
    batcher.fail("It broke.")
    assert [str(error) for error in callers.errors()] == ["None", "None", *["It broke."] * 3]
    assert batcher.take(MODEL) is None
    batcher.close()  # does not hide the failure
    callers.put("classify")
    assert str(callers.errors()[-1]) == "It broke."


def test_images_on_streams_are_taken_side_by_side_whatever_their_graph(batcher, callers):
    callers.put("classify", "explain", "classify")
    assert [callers.take_beside(STREAMS) for _ in range(2)] == [[0], [1]]
    batcher.done(callers.taken[0])
    assert callers.take_beside(STREAMS) == [2]  # alone in the queue, but beside the second
    batcher.fail("It broke.")
    assert [str(error) for error in callers.errors()] == ["None", "It broke.", "It broke."]


def test_nothing_is_taken_beside_a_run_on_all_cores_and_that_is_not_begun_beside_others(batcher, callers):
    callers.put("classify")
    assert callers.take(STREAMS) == [0]
    callers.put("classify", "classify")
    with waiting(batcher.take, STREAMS) as on_stream:
        batcher.done(callers.taken[0])
    assert on_stream.result().plan.streamed
    with waiting(batcher.take, MODEL) as on_all_cores:
        batcher.done(on_stream.result())
    assert not on_all_cores.result().plan.streamed


def test_several_are_waited_for_until_the_queue_is_closed(batcher, callers):
    callers.put("classify")
    with waiting(batcher.wait_for_several) as several:
        callers.put("explain")
    assert several.result()
    batcher.close()
    assert not batcher.wait_for_several()


def test_a_closed_batcher_gives_out_waiting_images_and_then_ends(batcher, callers):
    callers.put("classify")
    batcher.close()
    callers.put("classify")
    refused = callers.errors()[1]
    assert isinstance(refused, Unavailable)
    assert str(refused) == STOPPING
    assert callers.take() == [0]
    assert batcher.take(MODEL) is None


def test_late_and_cancelled_images_are_not_taken(batcher, callers):
    callers.put("classify", deadline=time.monotonic() + 4)
    callers.put("explain")
    callers.put("classify", deadline=time.monotonic() + 60)
    callers.tasks[1].cancel()
    callers.turn()
    assert callers.take() == [2]
    assert isinstance(callers.errors()[0], DeadlineExceeded)


@pytest.fixture
def impatient(monkeypatch, callers) -> Batcher:
    """It wants a self-test at once, and the next one after the ordinary time."""
    with monkeypatch.context() as at_once:
        at_once.setattr("app.inference.batcher.SELF_TEST_S", 0.0)
        callers.batcher = Batcher()
    return callers.batcher


def test_a_self_test_follows_a_while_without_images(impatient):
    test = impatient.take(MODEL)
    assert isinstance(test, SelfTest)
    impatient.done(test)
    with waiting(impatient.take, MODEL):
        impatient.close()


def test_nothing_is_taken_during_a_self_test(impatient, callers):
    test = impatient.take(MODEL)
    callers.put("classify")
    with waiting(impatient.take, MODEL) as batch:
        impatient.done(test)
    assert isinstance(batch.result(), Batch)


def test_an_image_goes_before_a_self_test_and_puts_it_off(impatient, callers):
    callers.put("classify")
    assert callers.take() == [0]
    impatient.done(callers.taken[0])
    with waiting(impatient.take, MODEL):
        impatient.close()


def test_no_image_is_answered_after_the_event_loop_has_closed(caplog):
    loop = asyncio.new_event_loop()
    ticket = Ticket(graph="classify", pixels=None, deadline=math.inf, future=loop.create_future(), queued=0.0)
    loop.close()
    answer([ticket], [Unavailable("It broke.")])
    assert "dropped 1 answers" in caplog.text
