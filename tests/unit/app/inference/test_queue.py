"""app/inference/queue.py without threads: what waits, what is taken, and who is answered."""

import asyncio
import math
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from app.errors import DeadlineExceeded, Unavailable
from app.inference.model import Plan
from app.inference.queue import Queue, SelfTest, Ticket
from app.lifecycle import STOPPING


def plan(graph, waiting):
    """Two images at most."""
    return Plan(min(waiting, 2), 2)


MODEL = SimpleNamespace(plan=plan, expected=lambda graph, images: 5.0)


@pytest.fixture
def loop():
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@pytest.fixture
def queue() -> Queue:
    return Queue()


def put(queue: Queue, loop: asyncio.AbstractEventLoop, *graphs: str, deadline: float = math.inf) -> list[Ticket]:
    pixels = np.zeros((2, 2, 3), np.uint8)
    tickets = [
        Ticket(graph=graph, pixels=pixels, deadline=deadline, future=loop.create_future(), queued=0.0)
        for graph in graphs
    ]
    for ticket in tickets:
        queue.put(ticket)
    return tickets


def errors(loop: asyncio.AbstractEventLoop, tickets: list[Ticket]) -> list[BaseException | None]:
    """What each caller gets, once the event loop has run; None while there is no answer."""
    loop.run_until_complete(asyncio.sleep(0))
    return [ticket.future.exception() if ticket.future.done() else None for ticket in tickets]


def test_a_batch_is_of_the_oldest_tickets_graph_and_as_large_as_pays(queue, loop):
    a, b, c, d, e = put(queue, loop, "explain", "classify", "explain", "explain", "classify")
    assert queue.take(MODEL).tickets == [a, c]
    assert queue.waiting == 3
    assert queue.take(MODEL).tickets == [b, e]
    assert queue.take(MODEL).tickets == [d]
    assert queue.waiting == 0


def test_the_model_plans_with_all_that_wait_for_a_graph(queue, loop):
    planned = []

    def watched(graph, waiting):
        planned.append((graph, waiting))
        return Plan(1, 4)

    model = SimpleNamespace(plan=watched, expected=MODEL.expected)
    put(queue, loop, "explain", "classify", "explain")
    taken = [queue.take(model) for _ in range(3)]
    assert [(batch.graph, batch.plan, len(batch.tickets)) for batch in taken] == [
        (graph, Plan(1, 4), 1) for graph in ("explain", "classify", "explain")
    ]
    assert planned == [("explain", 2), ("classify", 1), ("explain", 1)]


def test_a_failure_answers_what_waits_and_what_is_taken_but_not_what_is_done(queue, loop):
    tickets = put(queue, loop, *["classify"] * 5)
    queue.take(MODEL)
    queue.take(MODEL)
    queue.fail("It broke.")
    assert [str(error) for error in errors(loop, tickets)] == ["None", "None", *["It broke."] * 3]
    assert queue.take(MODEL) is None
    with pytest.raises(Unavailable, match=r"It broke\."):
        put(queue, loop, "classify")


def test_a_closed_queue_gives_out_what_waits_and_then_ends(queue, loop):
    tickets = put(queue, loop, "classify")
    queue.close()
    with pytest.raises(Unavailable, match=STOPPING):
        put(queue, loop, "classify")
    assert queue.take(MODEL).tickets == tickets
    assert queue.take(MODEL) is None


def test_closing_after_a_failure_does_not_hide_it(queue, loop):
    queue.fail("It broke.")
    queue.close()
    with pytest.raises(Unavailable, match=r"It broke\."):
        put(queue, loop, "classify")


def test_late_and_cancelled_tickets_are_not_taken(queue, loop):
    late = put(queue, loop, "classify", deadline=time.monotonic() + 4)
    (cancelled,) = put(queue, loop, "explain")
    in_time = put(queue, loop, "classify", deadline=time.monotonic() + 60)
    cancelled.future.cancel()
    assert queue.take(MODEL).tickets == in_time
    assert [type(error) for error in errors(loop, late)] == [DeadlineExceeded]


def test_after_a_while_without_images_there_is_a_self_test_and_then_none_for_as_long(monkeypatch):
    with monkeypatch.context() as at_once:
        at_once.setattr("app.inference.queue.SELF_TEST_S", 0.0)
        queue = Queue()
    assert isinstance(queue.take(MODEL), SelfTest)
    with ThreadPoolExecutor(1) as runner:
        next_one = runner.submit(queue.take, MODEL)
        with pytest.raises(TimeoutError):
            next_one.result(0.05)
        queue.close()
        assert next_one.result(10) is None


def test_an_image_goes_before_a_self_test_and_puts_it_off(loop, monkeypatch):
    with monkeypatch.context() as at_once:
        at_once.setattr("app.inference.queue.SELF_TEST_S", 0.0)
        queue = Queue()
    tickets = put(queue, loop, "classify")
    assert queue.take(MODEL).tickets == tickets
    with ThreadPoolExecutor(1) as runner:
        other = runner.submit(queue.take, MODEL)
        with pytest.raises(TimeoutError):
            other.result(0.05)
        queue.close()


def test_after_the_event_loop_has_closed_nothing_is_answered(queue, loop, caplog):
    put(queue, loop, "classify")
    loop.close()
    queue.fail("It broke.")
    assert "dropped 1 answers" in caplog.text
