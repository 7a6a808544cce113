"""What the thread of the model does: it takes a batch from the queue, runs it and answers it.

A batch that fails is run again: in smaller batches if memory was short, else image by image, so that only the image
that causes the error fails. After an image has failed alone, and after a while without work, the runner asks the known
answer of the bundle. An engine that gives another answer, or fails on it, is broken.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle

import numpy as np

from app.errors import InferenceFailed, Overloaded
from app.inference.engine import Graph, Outputs, fault_of
from app.inference.known_answer import WrongAnswer
from app.inference.model import GRAPHS, Model, Plan
from app.inference.queue import Queue, SelfTest, Ticket, answer

log = logging.getLogger(__name__)

# A run hangs when it takes longer than both.
HUNG_RUN_S = 60.0
HUNG_RUN_RATIO = 10.0  # of the expected time


@dataclass
class Run:
    """A run under way. No clock says how long it takes, but who watches it: after a pause of the machine every run
    would seem to hang.
    """

    left_s: float  # before it counts as one that will not end


class BrokenEngineError(Exception):
    """The engine will not work again in this process."""


class Runner:
    def __init__(self, *, model: Model, queue: Queue, on_batch: Callable[[Graph, int], None]) -> None:
        """`on_batch` is called with the size of each batch, before it runs."""
        self._model = model
        self._queue = queue
        self._on_batch = on_batch
        self._run: Run | None = None
        self._tests = cycle(GRAPHS)

    def hangs(self, seconds: float) -> bool:
        """Whether the run under way will not end, now that it has taken so many seconds more. For one thread, which
        watches.
        """
        if not (run := self._run):
            return False
        run.left_s -= seconds
        return run.left_s < 0

    def serve(self) -> None:
        """Run batches until the queue ends. Raises when the engine is broken, and WrongAnswer when it computes wrong
        numbers. The batch then stays in the queue.
        """
        while (work := self._queue.take(self._model)) is not None:
            if isinstance(work, SelfTest):
                self._probe(next(self._tests))
            else:
                self._process(work.graph, work.tickets, work.plan)

    def _process(self, graph: Graph, batch: list[Ticket], plan: Plan) -> None:
        """Answer all of `batch`, as planned or, where callers have left, in smaller runs. Raises when the engine is
        broken.
        """
        while left := [ticket for ticket in batch if not ticket.future.done()]:
            if len(left) < plan.images:
                plan = self._model.plan(graph, len(left))
            self._answer(graph, left[: plan.images], plan.size)
            batch = left[plan.images :]

    def _answer(self, graph: Graph, batch: list[Ticket], size: int) -> None:
        self._on_batch(graph, len(batch))
        started = time.perf_counter()
        try:
            with self._watched(graph, size):
                outputs = self._model.run(graph, [ticket.pixels for ticket in batch], size)
        except WrongAnswer:
            raise
        except Exception as error:
            self._answer_again(graph, batch, size, error)
            return
        ended = time.perf_counter()
        for ticket in batch:
            ticket.started, ticket.ended = started, ended
        rows = [{name: of_all[i] for name, of_all in outputs.items()} for i in range(len(batch))]
        finite = [True] * len(batch) if sums_are_finite(outputs) else [_finite(of_one) for of_one in rows]
        answer(batch, [of_one if ok else InferenceFailed() for of_one, ok in zip(rows, finite, strict=True)])
        if not all(finite):
            log.error("the model produced NaN or infinity for %d of %d images", finite.count(False), len(batch))
            self._probe(graph)

    def _answer_again(self, graph: Graph, batch: list[Ticket], size: int, error: Exception) -> None:
        fault = fault_of(error)
        log.error("a batch of %d failed (%s)", size, fault, exc_info=error)
        if fault == "fatal":
            raise BrokenEngineError from error
        if size == 1:
            no_memory = Overloaded("There is not enough memory now. Send this request again in a moment.")
            answer(batch, [no_memory if fault == "memory" else InferenceFailed()])
            self._probe(graph)
            return
        largest = self._model.forbid(graph, size) if fault == "memory" else 1
        self._process(graph, batch, self._model.plan(graph, largest))

    def _probe(self, graph: Graph) -> None:
        """Ask the known answer. Raises when that fails."""
        with self._watched(graph, 1):
            self._model.probe(graph)

    @contextmanager
    def _watched(self, graph: Graph, images: int) -> Iterator[None]:
        self._run = Run(max(HUNG_RUN_S, HUNG_RUN_RATIO * self._model.expected(graph, images)))
        try:
            yield
        finally:
            self._run = None


def sums_are_finite(outputs: Outputs) -> bool:
    """Whether no number is NaN or infinite. Sums of finite numbers may overflow, so False does not say that one is."""
    with np.errstate(over="ignore", invalid="ignore"):
        return all(np.isfinite(of_all.sum()) for of_all in outputs.values())


def _finite(outputs: Outputs) -> bool:
    return all(np.isfinite(rows).all() for rows in outputs.values())
