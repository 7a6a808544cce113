"""app/inference/batcher.py without threads: what waits, what is taken, and who is answered."""

import asyncio
import math
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

from app.errors import DeadlineExceeded, Unavailable
from app.inference.batcher import Batch, Batcher, SelfTest, Ticket, answer
from app.inference.model import Plan
from app.lifecycle import STOPPING


def plan(graph, waiting, *, others):
    """Two images at most."""
    return Plan(min(waiting, 2), 2)


MODEL = SimpleNamespace(plan=plan, expected=lambda graph, images: 5.0)


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


@pytest.fixture
def batcher() -> Batcher:
    return Batcher()


@pytest.fixture
def callers(batcher):
    loop = asyncio.new_event_loop()
    callers = Callers(batcher, loop)
    yield callers
    for task in callers.tasks:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*callers.tasks, return_exceptions=True))
    loop.close()


def test_a_batch_has_the_graph_of_the_oldest_image_and_the_size_that_pays(batcher, callers):
    callers.put("explain", "classify", "explain", "explain", "classify")
    assert callers.take() == [0, 2]
    assert batcher.waiting == 3
    assert callers.take() == [1, 4]
    assert callers.take() == [3]
    assert batcher.waiting == 0


def test_the_model_plans_with_all_images_that_wait_for_a_graph(batcher, callers):
    planned = []

    def watched(graph, waiting, *, others):
        planned.append((graph, waiting))
        return Plan(1, 4)

    callers.put("explain", "classify", "explain")
    model = SimpleNamespace(plan=watched, expected=MODEL.expected)
    taken = []
    for _ in range(3):
        taken.append(batcher.take(model))
        batcher.done(taken[-1])
    assert [(batch.graph, batch.plan, len(batch.tickets)) for batch in taken] == [
        (graph, Plan(1, 4), 1) for graph in ("explain", "classify", "explain")
    ]
    assert planned == [("explain", 2), ("classify", 1), ("explain", 1)]


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


STREAMS = SimpleNamespace(
    plan=lambda graph, waiting, *, others: Plan(1, 1, streamed=waiting + others > 1), expected=MODEL.expected
)


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
    with ThreadPoolExecutor(1) as runner:
        taken = runner.submit(batcher.take, STREAMS)
        with pytest.raises(TimeoutError):
            taken.result(0.05)
        batcher.done(callers.taken[0])
        assert taken.result(10).plan.streamed
        on_all_cores = runner.submit(batcher.take, MODEL)
        with pytest.raises(TimeoutError):
            on_all_cores.result(0.05)
        batcher.done(taken.result())
        assert not on_all_cores.result(10).plan.streamed


def test_several_are_waited_for_until_the_queue_is_closed(batcher, callers):
    callers.put("classify")
    with ThreadPoolExecutor(1) as runner:
        several = runner.submit(batcher.wait_for_several)
        with pytest.raises(TimeoutError):
            several.result(0.05)
        callers.put("explain")
        assert several.result(10)
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
def impatient(monkeypatch) -> Batcher:
    """It wants a self-test at once, and the next one after the ordinary time."""
    with monkeypatch.context() as at_once:
        at_once.setattr("app.inference.batcher.SELF_TEST_S", 0.0)
        return Batcher()


def takes_nothing(batcher: Batcher) -> bool:
    """Whether the next batch has to be waited for."""
    with ThreadPoolExecutor(1) as runner:
        taken = runner.submit(batcher.take, MODEL)
        try:
            taken.result(0.05)
        except TimeoutError:
            return True
        finally:
            batcher.close()
    return False


def test_a_self_test_follows_a_while_without_images(impatient):
    test = impatient.take(MODEL)
    assert isinstance(test, SelfTest)
    impatient.done(test)
    assert takes_nothing(impatient)


def test_nothing_is_taken_during_a_self_test(impatient, callers):
    callers.batcher = impatient
    test = impatient.take(MODEL)
    callers.put("classify")
    with ThreadPoolExecutor(1) as runner:
        taken = runner.submit(impatient.take, MODEL)
        with pytest.raises(TimeoutError):
            taken.result(0.05)
        impatient.done(test)
        assert isinstance(taken.result(10), Batch)


def test_an_image_goes_before_a_self_test_and_puts_it_off(impatient, callers):
    callers.batcher = impatient
    callers.put("classify")
    assert callers.take() == [0]
    assert takes_nothing(impatient)


def test_no_image_is_answered_after_the_event_loop_has_closed(caplog):
    loop = asyncio.new_event_loop()
    ticket = Ticket(graph="classify", pixels=None, deadline=math.inf, future=loop.create_future(), queued=0.0)
    loop.close()
    answer([ticket], [Unavailable("It broke.")])
    assert "dropped 1 answers" in caplog.text
