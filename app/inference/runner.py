"""One of the threads that run the model: takes a batch, runs it, answers it.

A batch that fails is made again: in smaller ones where memory was short, else image by image, so that only a guilty
image fails. After an image has failed alone, and when nothing has been asked for a while, a blank image has to pass: an
engine that fails on that fails on all.
"""

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from app.errors import InferenceFailed, Overloaded
from app.inference.contract import Engine, Graph, Outputs
from app.inference.faults import fault_of
from app.inference.queue import Ticket, answer

log = logging.getLogger(__name__)

STUCK_S = 60.0  # a run that takes longer, and STUCK times longer than expected, will not come back
STUCK = 10.0


class BrokenEngineError(Exception):
    """The engine will not work again in this process."""


class Runner:
    def __init__(
        self,
        *,
        engine: Engine,
        take: Callable[["Runner"], list[Ticket] | None],
        on_batch: Callable[[Graph, int], None],
    ) -> None:
        """`take` waits for a batch and puts it into `taken`: an empty one when nothing comes, None at the end."""
        self._engine = engine
        self._take = take
        self._on_batch = on_batch
        self.taken: list[Ticket] = []
        self.overdue = math.inf  # when the run under way is given up, in seconds of time.monotonic

    def serve(self) -> None:
        """Until the end. Raises when the engine is broken."""
        while (batch := self._take(self)) is not None:
            if batch:
                self._process(batch)
            else:
                self._probe("explain")

    def _process(self, batch: list[Ticket]) -> None:
        """Answer all of `batch`. Raises when the engine is broken."""
        batch = [ticket for ticket in batch if not ticket.future.cancelled()]
        if not batch:
            return
        graph = batch[0].graph
        self._on_batch(graph, len(batch))
        started = time.perf_counter()
        try:
            with self._watched(graph, len(batch)):
                outputs = self._engine.run(graph, [ticket.pixels for ticket in batch])
        except Exception as error:
            self._process_again(batch, error)
            return
        ended = time.perf_counter()
        for ticket in batch:
            ticket.started, ticket.ended = started, ended
        rows = [{name: of_all[i] for name, of_all in outputs.items()} for i in range(len(batch))]
        sound = [_finite(of_one) for of_one in rows]
        answer(batch, [of_one if ok else InferenceFailed() for of_one, ok in zip(rows, sound, strict=True)])
        if not all(sound):
            log.error("numbers that are not finite for %d of %d images", sound.count(False), len(batch))
            self._probe(graph)

    def _process_again(self, batch: list[Ticket], error: Exception) -> None:
        graph, fault = batch[0].graph, fault_of(error)
        log.error("a batch of %d failed (%s)", len(batch), fault, exc_info=error)
        if fault == "fatal":
            raise BrokenEngineError from error
        if len(batch) == 1:
            lone = Overloaded("There is not enough memory now. Send this request again in a moment.")
            answer(batch, [lone if fault == "memory" else InferenceFailed()])
            self._probe(graph)
            return
        size = self._engine.forbid(graph, len(batch)) if fault == "memory" else 1
        for start in range(0, len(batch), size):
            self._process(batch[start : start + size])

    def _probe(self, graph: Graph) -> None:
        """Raises when a blank image fails."""
        with self._watched(graph, 1):
            outputs = self._engine.probe(graph)
        if not _finite(outputs):
            raise BrokenEngineError("numbers that are not finite for a blank image")

    @contextmanager
    def _watched(self, graph: Graph, images: int) -> Iterator[None]:
        self.overdue = time.monotonic() + max(STUCK_S, STUCK * self._engine.expected(graph, images))
        try:
            yield
        finally:
            self.overdue = math.inf


def _finite(outputs: Outputs) -> bool:
    return all(np.isfinite(rows).all() for rows in outputs.values())
