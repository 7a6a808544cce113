"""The threads of the model: one opens the model, and all take batches, run and answer them.

A batch that fails is run again image by image, so that only the image that causes the error fails. After an image has
failed alone, and after a while without work, the runner checks the known image of the bundle. An engine that gives
another answer, or fails on it, is broken.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np

from app.errors import InferenceFailed, Overloaded
from app.inference.batcher import Batcher, Ticket, answer
from app.inference.engine import Graph, Outputs, Plan, fault_of
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


@dataclass(eq=False)
class Run:
    """A run under way. No clock says how long it takes, but the checks of it: after a pause of the machine every run
    would seem to hang.
    """

    left_s: float  # before it counts as one that will not end


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
        self._runs: list[Run] = []
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
        for run in list(self._runs):
            run.left_s -= CHECK_S
            if run.left_s < 0:
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
                self._process(batch.tickets, batch.plan)
            else:
                self._probe(batch.plan)
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

    def _process(self, batch: list[Ticket], plan: Plan) -> None:
        """Answer all of `batch`, in runs of at most as many images as planned. Raises when the engine is broken, and
        WrongAnswer when it computes wrong numbers. The batcher then answers the batch.
        """
        while left := [ticket for ticket in batch if not ticket.future.done()]:  # some callers may have left
            plan = plan._replace(images=min(len(left), plan.images))
            self._run(left[: plan.images], plan)
            batch = left[plan.images :]

    def _run(self, batch: list[Ticket], plan: Plan) -> None:
        self.on_batch(plan.graph, plan.images)
        started = time.perf_counter()
        try:
            with self._watched(plan):
                outputs = self._model.run(
                    plan, [ticket.pixels for ticket in batch], [ticket.classes for ticket in batch]
                )
        except WrongAnswer:
            raise
        except Exception as error:
            self._run_again(batch, plan, error)
            return
        ended = time.perf_counter()
        for ticket in batch:
            ticket.started, ticket.ended = started, ended
        images = [{name: array[i] for name, array in outputs.items()} for i in range(len(batch))]
        finite = [True] * len(batch)
        if not sums_are_finite(outputs):
            finite = [all(np.isfinite(array).all() for array in image.values()) for image in images]
        answer(batch, [image if ok else InferenceFailed() for image, ok in zip(images, finite, strict=True)])
        if not all(finite):
            log.error("the model produced NaN or infinity for %d of %d images", finite.count(False), len(batch))
            self._probe(plan)

    def _run_again(self, batch: list[Ticket], plan: Plan, error: Exception) -> None:
        fault = fault_of(error)
        log.error("a batch of %d failed (%s)", len(batch), fault, exc_info=error)
        if fault == "fatal":
            raise error
        if len(batch) == 1:
            no_memory = Overloaded("There is not enough memory now. Send this request again in a moment.")
            answer(batch, [no_memory if fault == "memory" else InferenceFailed()])
            self._probe(plan)
            return
        self._process(batch, plan._replace(images=1))

    def _probe(self, plan: Plan) -> None:
        """Check the known image. Raises when that fails."""
        with self._watched(plan):
            self._model.probe(plan)

    @contextmanager
    def _watched(self, plan: Plan) -> Iterator[None]:
        run = Run(max(HUNG_RUN_S, HUNG_RUN_RATIO * self._model.expected(plan)))
        self._runs.append(run)
        try:
            yield
        finally:
            self._runs.remove(run)


def sums_are_finite(outputs: Outputs) -> bool:
    """Whether no number is NaN or infinite. Sums of finite numbers may overflow, so False does not say that one is."""
    with np.errstate(over="ignore", invalid="ignore"):
        return all(np.isfinite(array.sum()) for array in outputs.values())
