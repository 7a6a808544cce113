"""Images that wait for the model or are being run, and how their callers get the answer.

There is no timer. When the engine is free, it takes what is waiting, up to the largest batch that pays. Images that
arrive during a run join the next one. So a single request runs at once, and batches grow with the load (the scheme of
text-embeddings-inference, `core/src/queue.rs`). A CPU has several runs side by side in place of a batch.
"""

import asyncio
import logging
import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from app.bundle import GRAPHS, Graph
from app.errors import DeadlineExceeded, ServiceError, Unavailable
from app.inference.engine import NOTHING_ASKED, Asked, Outputs, Pixels, runs_beside
from app.inference.model import Model
from app.lifecycle import STOPPING
from app.telemetry.stages import Stages

log = logging.getLogger(__name__)

SELF_TEST_S = 30.0  # without a batch, after which the engine has to test itself
BUSY_TEST_S = 120.0  # since the last self-test, after which it has to in any case


@dataclass(kw_only=True, eq=False)
class Ticket:
    """One image and its caller. The last three times are seconds of time.perf_counter."""

    graph: Graph
    pixels: Pixels  # (height, width, 3)
    asked: Asked
    deadline: float  # seconds of time.monotonic
    future: asyncio.Future[Outputs]
    queued: float
    started: float = 0.0  # of the batch that answered it
    ended: float = 0.0


@dataclass(kw_only=True, eq=False)
class Batch:
    """Tickets for one run. Without any it is a self-test, a run of the known image: when the engine has had no batch
    for a while, or no test for a longer one.
    """

    graph: Graph
    tickets: list[Ticket]
    beside: bool = False  # others, on its share of the cores; else it has all of them, and nothing runs beside it
    # Seconds before its run counts as one that will not end. No clock says how long a run takes, but the checks of it:
    # after a pause of the machine every run would seem to hang.
    left_s: float = math.inf


class Batcher:
    """A queue of single images. `run` belongs to the event loop, where `Admission` bounds the queue; any thread may
    call the rest.

    It holds a batch until the batch is done, so when the engine breaks, every caller can be answered from here.
    """

    def __init__(self) -> None:
        self._waiting: list[Ticket] = []  # oldest first
        self._running: list[Batch] = []  # in the hands of the runner
        self._closed: str | None = None  # why no more tickets are accepted, as a public sentence
        self._test_at = time.monotonic() + SELF_TEST_S  # if there is no batch until then
        self._test_anyway_at = time.monotonic() + BUSY_TEST_S
        self._self_tests = 0
        self._changed = threading.Condition()

    @property
    def waiting(self) -> int:
        """Images that no batch has taken yet."""
        return len(self._waiting)

    @property
    def running(self) -> list[Batch]:
        """What was taken and is not done."""
        with self._changed:
            return list(self._running)

    async def run(
        self,
        graph: Graph,
        pixels: Pixels,
        *,
        asked: Asked = NOTHING_ASKED,
        deadline: float = math.inf,
        stages: Stages | None = None,
    ) -> Outputs:
        """Outputs for one image, all finite, without the batch dimension. `pixels` is uint8 (height, width, 3).

        `deadline` is in seconds of time.monotonic. A caller that is cancelled leaves the queue. Raises DeadlineExceeded
        where not even a run of this image alone could end by `deadline`, InferenceFailed or Overloaded when this image
        fails alone, Unavailable when the service stops or fails.
        """
        future: asyncio.Future[Outputs] = asyncio.get_running_loop().create_future()
        ticket = Ticket(
            graph=graph,
            pixels=pixels,
            asked=asked,
            deadline=deadline,
            future=future,
            queued=time.perf_counter(),
        )
        with self._changed:
            if self._closed:
                raise Unavailable(self._closed)
            self._waiting.append(ticket)
            self._changed.notify()  # one thread is enough for it
        outputs = await future
        if stages:
            stages.add("queue", ticket.queued, ticket.started)
            stages.add("inference", ticket.started, ticket.ended)
        return outputs

    def take(self, model: Model) -> Batch | None:
        """Wait for the next batch: the oldest ticket, and those after it for the same graph, as many as pay.

        After SELF_TEST_S without a batch this is a self-test, and in any case after BUSY_TEST_S without one. Returns
        None when the queue is closed and nothing waits. Tell what was taken when it is `done`.
        """
        with self._changed:
            while not (batch := self._next(model)):
                if self._closed and not self._waiting:
                    return None
                self._changed.wait(None if self._running else self._test_at - time.monotonic())
            self._running.append(batch)
            self._test_at = time.monotonic() + SELF_TEST_S
            if not batch.tickets:
                self._test_anyway_at = time.monotonic() + BUSY_TEST_S
            return batch

    def done(self, batch: Batch) -> None:
        """Every ticket of what was taken has been answered or cancelled."""
        with self._changed:
            self._running.remove(batch)
            self._changed.notify_all()

    def close(self) -> None:
        """Accept no more tickets. The runner still takes those that wait."""
        with self._changed:
            self._closed = self._closed or STOPPING
            self._changed.notify_all()

    def fail(self, reason: str) -> None:
        """Accept no more tickets, and answer all of them with Unavailable. `reason` is a public sentence."""
        with self._changed:
            self._closed = reason
            running = [ticket for batch in self._running for ticket in batch.tickets]
            unanswered = [*running, *self._waiting]
            self._waiting.clear()
            self._changed.notify_all()
        answer(unanswered, [Unavailable(reason) for _ in unanswered])

    def _next(self, model: Model) -> Batch | None:
        """None if there is nothing to run now. Tickets that cannot meet their deadline are answered."""
        waiting = [ticket for ticket in self._waiting if not ticket.future.cancelled()]
        now = time.monotonic()
        if now >= self._test_anyway_at and not self._closed and (test := self._next_test(model)):
            return test
        soonest = {graph: now + model.expected(graph) for graph in GRAPHS}
        late = {ticket for ticket in waiting if ticket.deadline < soonest[ticket.graph]}
        answer(list(late), [DeadlineExceeded() for _ in late])
        waiting = self._waiting = [ticket for ticket in waiting if ticket not in late]
        if not waiting:
            idle = not self._running and not self._closed and now >= self._test_at
            return self._next_test(model) if idle else None
        graph = waiting[0].graph
        same = [ticket for ticket in waiting if ticket.graph == graph]
        several = len(same) + len(self._running) > 1  # there is something to share the cores with
        beside = several and runs_beside(graph) and model.engine.side_by_side > 1
        if not self._has_room(beside=beside):
            return None
        batch = Batch(graph=graph, tickets=same[: 1 if beside else model.largest[graph]], beside=beside)
        taken = set(batch.tickets)
        self._waiting = [ticket for ticket in waiting if ticket not in taken]
        return batch

    def _next_test(self, model: Model) -> Batch | None:
        """Each graph in each way in which images are run, in turn. None while it has to wait for a run under way."""
        graphs = model.engine.layout
        tests = [Batch(graph=graph, tickets=[]) for graph in graphs]
        if model.engine.side_by_side > 1:
            tests = [*(Batch(graph=graph, tickets=[], beside=True) for graph in graphs if runs_beside(graph)), *tests]
        tests = [test for test in tests if self._has_room(beside=test.beside)]
        if not tests:
            return None
        self._self_tests += 1
        return tests[self._self_tests % len(tests)]

    def _has_room(self, *, beside: bool) -> bool:
        """Whether a run can begin now: on all cores it is alone."""
        return all(batch.beside for batch in self._running) if beside else not self._running


def answer(tickets: Sequence[Ticket], answers: Sequence[Outputs | ServiceError]) -> None:
    """Resolve the futures of `tickets` in their event loop, but for those that are done. Any thread may call this."""

    def resolve() -> None:
        for ticket, result in zip(tickets, answers, strict=True):
            if ticket.future.done():
                continue
            if isinstance(result, ServiceError):
                ticket.future.set_exception(result)
            else:
                ticket.future.set_result(result)

    if not tickets:
        return
    try:
        tickets[0].future.get_loop().call_soon_threadsafe(resolve)
    except RuntimeError:  # the loop is closed: no caller is left
        log.warning("dropped %d answers after the event loop was closed", len(tickets))
