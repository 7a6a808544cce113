"""app/inference/queue.py without threads: what waits, what is taken, and who is answered."""

import asyncio
import math
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from app.errors import DeadlineExceeded, Unavailable
from app.inference.contract import Plan
from app.inference.queue import Queue, SelfTest, Ticket
from app.lifecycle import STOPPING


def plan(graph, *, waiting, running):
    """Three runs at a time, of two images at most."""
    return Plan("wide", min(waiting, 2)) if len(running) < 3 else None


ENGINE = SimpleNamespace(plan=plan, expected=lambda graph, images: 5.0)


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
    assert queue.take(ENGINE).tickets == [a, c]
    assert queue.waiting == 3
    assert queue.take(ENGINE).tickets == [b, e]
    assert queue.take(ENGINE).tickets == [d]
    assert queue.waiting == 0


def test_the_engine_plans_with_all_that_waits_and_runs(queue, loop):
    planned = []

    def watched(graph, **in_work):
        planned.append((graph, in_work))
        return Plan("narrow", 1)

    engine = SimpleNamespace(plan=watched, expected=ENGINE.expected)
    put(queue, loop, "explain", "classify", "explain")
    taken = [queue.take(engine), queue.take(engine)]
    assert [(batch.graph, batch.plan, len(batch.tickets)) for batch in taken] == [
        ("explain", Plan("narrow", 1), 1),
        ("classify", Plan("narrow", 1), 1),
    ]
    queue.done(taken[0])
    queue.take(engine)
    assert planned == [
        ("explain", {"waiting": 3, "running": []}),
        ("classify", {"waiting": 2, "running": [Plan("narrow", 1)]}),
        ("explain", {"waiting": 1, "running": [Plan("narrow", 1)]}),
    ]


def test_what_the_engine_does_not_run_yet_waits_for_the_end_of_a_run(queue, loop):
    tickets = put(queue, loop, *["classify"] * 7)
    first, *_ = [queue.take(ENGINE) for _ in range(3)]
    with ThreadPoolExecutor(1) as runner:
        fourth = runner.submit(queue.take, ENGINE)
        with pytest.raises(TimeoutError):
            fourth.result(0.05)
        queue.done(first)
        assert fourth.result(10).tickets == tickets[6:]


def test_a_failure_answers_what_waits_and_what_is_taken_but_not_what_is_done(queue, loop):
    tickets = put(queue, loop, *["classify"] * 5)
    queue.done(queue.take(ENGINE))
    queue.take(ENGINE)
    queue.fail("It broke.")
    assert [str(error) for error in errors(loop, tickets)] == ["None", "None", *["It broke."] * 3]
    assert queue.take(ENGINE) is None
    with pytest.raises(Unavailable, match=r"It broke\."):
        put(queue, loop, "classify")


def test_a_closed_queue_gives_out_what_waits_and_then_ends(queue, loop):
    tickets = put(queue, loop, "classify")
    queue.close()
    with pytest.raises(Unavailable, match=STOPPING):
        put(queue, loop, "classify")
    assert queue.take(ENGINE).tickets == tickets
    assert queue.take(ENGINE) is None


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
    assert queue.take(ENGINE).tickets == in_time
    assert [type(error) for error in errors(loop, late)] == [DeadlineExceeded]


def test_one_of_the_idle_runners_gets_a_self_test_and_the_others_wait(monkeypatch):
    with monkeypatch.context() as at_once:
        at_once.setattr("app.inference.queue.SELF_TEST_S", 0.0)
        queue = Queue()
    assert isinstance(queue.take(ENGINE), SelfTest)
    with ThreadPoolExecutor(1) as runner:
        other = runner.submit(queue.take, ENGINE)
        with pytest.raises(TimeoutError):
            other.result(0.05)
        queue.close()
        assert other.result(10) is None


def test_an_image_goes_before_a_self_test_and_puts_it_off(loop, monkeypatch):
    with monkeypatch.context() as at_once:
        at_once.setattr("app.inference.queue.SELF_TEST_S", 0.0)
        queue = Queue()
    tickets = put(queue, loop, "classify")
    assert queue.take(ENGINE).tickets == tickets
    with ThreadPoolExecutor(1) as runner:
        other = runner.submit(queue.take, ENGINE)
        with pytest.raises(TimeoutError):
            other.result(0.05)
        queue.close()


def test_after_the_event_loop_has_closed_nothing_is_answered(queue, loop, caplog):
    put(queue, loop, "classify")
    loop.close()
    queue.fail("It broke.")
    assert "dropped 1 answers" in caplog.text
