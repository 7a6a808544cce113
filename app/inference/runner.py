"""One of the threads that run the model: takes a batch from the queue, runs it and answers it.

A batch that fails is run again: in smaller batches if memory was short, else image by image, so that only the image
that causes the error fails. After an image has failed alone, and after a while without work, the runner asks the known
answer of the bundle, and so it does before a batch size is used for the first time. An engine that gives another
answer, or fails on it, is broken.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from app.errors import InferenceFailed, Overloaded
from app.inference.contract import Engine, Gear, Graph, Outputs
from app.inference.faults import fault_of
from app.inference.known_answer import WrongAnswer
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
    def __init__(self, *, engine: Engine, queue: Queue, on_batch: Callable[[Graph, int], None]) -> None:
        """`on_batch` is called with the size of each batch, before it runs."""
        self._engine = engine
        self._queue = queue
        self._on_batch = on_batch
        self._run: Run | None = None

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
        while (work := self._queue.take(self._engine)) is not None:
            if isinstance(work, SelfTest):
                self._probe("classify")  # the cheaper graph
            else:
                self._process(work.graph, work.plan.gear, work.tickets)
                self._queue.done(work)

    def _process(self, graph: Graph, gear: Gear, batch: list[Ticket]) -> None:
        """Answer all of `batch`. Raises when the engine is broken."""
        batch = [ticket for ticket in batch if not ticket.future.cancelled()]
        if not batch:
            return
        self._on_batch(graph, len(batch))
        started = time.perf_counter()
        try:
            with self._watched(graph, len(batch), gear):
                self._engine.ask_once(graph, len(batch), gear)
                outputs = self._engine.run(graph, [ticket.pixels for ticket in batch], gear)
        except WrongAnswer:
            raise
        except Exception as error:
            self._process_again(graph, gear, batch, error)
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

    def _process_again(self, graph: Graph, gear: Gear, batch: list[Ticket], error: Exception) -> None:
        fault = fault_of(error)
        log.error("a batch of %d failed (%s)", len(batch), fault, exc_info=error)
        if fault == "fatal":
            raise BrokenEngineError from error
        if len(batch) == 1:
            no_memory = Overloaded("There is not enough memory now. Send this request again in a moment.")
            answer(batch, [no_memory if fault == "memory" else InferenceFailed()])
            self._probe(graph)
            return
        size = self._engine.forbid(graph, len(batch)) if fault == "memory" else 1
        for start in range(0, len(batch), size):
            self._process(graph, gear, batch[start : start + size])

    def _probe(self, graph: Graph) -> None:
        """Ask the known answer. Raises when that fails."""
        with self._watched(graph, 1, "wide"):
            self._engine.probe(graph)

    @contextmanager
    def _watched(self, graph: Graph, images: int, gear: Gear) -> Iterator[None]:
        self._run = Run(max(HUNG_RUN_S, HUNG_RUN_RATIO * self._engine.expected(graph, images, gear)))
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
