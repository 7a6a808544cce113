"""The threads of the model: one opens the model, and all take batches, run and answer them.

A batch that fails is run again image by image, so that only the image that causes the error fails. After an image has
failed alone, and after a while without work, the runner checks the known image of the bundle. An engine that gives
another answer, or fails on it, is broken.
"""

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np

from app.bundle import Graph
from app.errors import InferenceFailed, Overloaded
from app.inference.batcher import Batch, Batcher, Ticket, answer
from app.inference.engine import Outputs, fault_of
from app.inference.known_answer import WrongAnswer
from app.inference.model import Model
from app.lifecycle import Lifecycle
from app.machine import MODEL_NICENESS, yield_by

log = logging.getLogger(__name__)

CHECK_S = 1.0  # between checks of the run under way
# A run hangs when it takes longer than both.
HUNG_RUN_S = 60.0
HUNG_RUN_RATIO = 10.0  # of the expected time
BROKEN = "The model fails on every image. The service is about to be restarted."
WRONG = "The model computes wrong numbers. The service is about to be restarted."
HUNG = "A forward pass hangs. The service is about to be restarted."


@dataclass(kw_only=True, eq=False)
class Runner:
    """Runs the batches of a batcher. An engine that fails on the known image, computes wrong numbers or hangs fails the
    service (`Lifecycle.fail`).
    """

    batcher: Batcher
    lifecycle: Lifecycle
    # Called with the size of each batch before it runs, in the thread that runs it
    on_batch: Callable[[Graph, int], None] = lambda graph, images: None

    def __post_init__(self) -> None:
        self._model: Model  # once it is open
        self._threads: list[threading.Thread] = []

    def start(self, open_model: Callable[[], Model]) -> Model:
        """Open the model in the thread that will run it, and wait for it. Raises what `open_model` raises."""
        opened: Future[Model] = Future()
        self._start_thread(partial(self._open, open_model, opened))
        return opened.result()

    def stop(self) -> None:
        """Finish what is waiting, then end the threads. Blocks."""
        self.batcher.close()
        for thread in self._threads:  # the last may be started meanwhile
            thread.join()

    async def watch(self) -> None:
        """Check every CHECK_S until cancelled."""
        while True:
            await asyncio.sleep(CHECK_S)
            self.check()

    def check(self) -> None:
        """Fail the service if a run under way will not end, now that it has taken CHECK_S more."""
        for batch in self.batcher.running:
            left_s = batch.left_s
            if math.isfinite(left_s):  # else its thread may give it a limit meanwhile, which would be lost
                batch.left_s = left_s - CHECK_S
            if left_s < CHECK_S:
                self.fail(HUNG)

    def fail(self, reason: str) -> None:
        """Answer everything with `reason`, a public sentence, from now on."""
        self.lifecycle.fail(reason)  # first: a client that gets 503 finds /livez failed
        self.batcher.fail(reason)

    def _open(self, open_model: Callable[[], Model], opened: Future[Model]) -> None:
        yield_by(MODEL_NICENESS)  # threads that this one starts inherit it
        try:
            model = open_model()
        except BaseException as error:
            opened.set_exception(error)
            return
        self._model = model
        opened.set_result(model)
        for _ in range(model.engine.side_by_side - 1):
            self._start_thread(self._serve)
        self._serve()

    def _serve(self) -> None:
        while (batch := self.batcher.take(self._model)) is not None:
            if batch.tickets:
                self._run(batch, batch.tickets)
            else:
                self._probe(batch)
            self.batcher.done(batch)

    def _start_thread(self, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=self._guard, args=(target,), name="engine", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _guard(self, target: Callable[[], None]) -> None:
        try:
            target()
        except WrongAnswer as wrong:
            log.critical("%s", wrong)
            self.fail(WRONG)
        except BaseException:
            log.exception("the engine is broken")
            self.fail(BROKEN)

    def _run(self, batch: Batch, tickets: list[Ticket]) -> None:
        """Answer these of the batch. Raises when the engine is broken, and WrongAnswer when it computes wrong numbers.
        The batcher then answers the batch.
        """
        tickets = [ticket for ticket in tickets if not ticket.future.done()]  # some callers may have left
        if not tickets:
            return
        self.on_batch(batch.graph, len(tickets))
        pixels, asked = [ticket.pixels for ticket in tickets], [ticket.asked for ticket in tickets]
        started = time.perf_counter()
        try:
            with self._watched(batch, len(tickets)):
                outputs = self._model.run(batch.graph, pixels, asked, beside=batch.beside)
        except WrongAnswer:
            raise
        except Exception as error:
            self._run_again(batch, tickets, error)
            return
        ended = time.perf_counter()
        for ticket in tickets:
            ticket.started, ticket.ended = started, ended
        images = [{name: array[i] for name, array in outputs.items()} for i in range(len(tickets))]
        finite = [True] * len(tickets)
        if not sums_are_finite(outputs):
            finite = [all(np.isfinite(array).all() for array in image.values()) for image in images]
        answer(tickets, [image if ok else InferenceFailed() for image, ok in zip(images, finite, strict=True)])
        if not all(finite):
            log.error("the model produced NaN or infinity for %d of %d images", finite.count(False), len(tickets))
            self._probe(batch, len(tickets))

    def _run_again(self, batch: Batch, tickets: list[Ticket], error: Exception) -> None:
        """Each alone."""
        fault = fault_of(error)
        log.error("a batch of %d failed (%s)", len(tickets), fault, exc_info=error)
        if fault == "fatal":
            raise error
        if len(tickets) == 1:
            no_memory = Overloaded("There is not enough memory now. Send this request again in a moment.")
            answer(tickets, [no_memory if fault == "memory" else InferenceFailed()])
            self._probe(batch)
            return
        for ticket in tickets:
            self._run(batch, [ticket])

    def _probe(self, batch: Batch, images: int = 1) -> None:
        """Check the known image, so many times at once. Raises when that fails."""
        with self._watched(batch, images):
            self._model.probe(batch.graph, images, beside=batch.beside)

    @contextmanager
    def _watched(self, batch: Batch, images: int) -> Iterator[None]:
        expected_s = self._model.expected(batch.graph, images, beside=batch.beside)
        batch.left_s = max(HUNG_RUN_S, HUNG_RUN_RATIO * expected_s)
        try:
            yield
        finally:
            batch.left_s = math.inf


def sums_are_finite(outputs: Outputs) -> bool:
    """Whether no number is NaN or infinite. Sums of finite numbers may overflow, so False does not say that one is."""
    with np.errstate(over="ignore", invalid="ignore"):
        return all(np.isfinite(array.sum()) for array in outputs.values())
