"""Many requests share one forward pass.

There is no timer. When the engine is free, it takes what is waiting, up to the largest batch that pays. Images that
arrive during a run join the next one. So a single request runs at once, and batches grow with the load (the scheme of
text-embeddings-inference, `core/src/queue.rs`). One thread opens the model and runs it.
"""

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from app.inference.engine import Graph, Outputs, Pixels
from app.inference.known_answer import WrongAnswer
from app.inference.model import Model
from app.inference.queue import Queue, Ticket
from app.inference.runner import Runner
from app.lifecycle import Lifecycle
from app.machine import MODEL_NICENESS, yield_by
from app.telemetry.stages import Stages

log = logging.getLogger(__name__)

WATCH_S = 1.0
BROKEN = "The model fails on every image. The service is about to be restarted."
WRONG = "The model computes wrong numbers. The service is about to be restarted."
HUNG = "A forward pass hangs. The service is about to be restarted."


class Batcher:
    """A model behind a queue of single images. `run` belongs to the event loop; `Admission` bounds the queue there.

    An engine that fails on the known image, computes wrong numbers or hangs fails the service (`Lifecycle.fail`).
    """

    def __init__(
        self, *, lifecycle: Lifecycle, on_batch: Callable[[Graph, int], None] = lambda graph, images: None
    ) -> None:
        """`on_batch` is called with the size of each batch, in the thread that runs it."""
        self._lifecycle = lifecycle
        self._on_batch = on_batch
        self._queue = Queue()
        self._runner: Runner | None = None
        self._thread: threading.Thread | None = None

    def start(self, open_model: Callable[[], Model]) -> Model:
        """Open the model in a thread that will run it, and wait for it. Raises what `open_model` raises."""
        opened: Future[Model] = Future()
        self._thread = threading.Thread(target=self._work, args=(open_model, opened), name="engine", daemon=True)
        self._thread.start()
        return opened.result()

    @property
    def waiting(self) -> int:
        """Images that no batch has taken yet."""
        return self._queue.waiting

    def stop(self) -> None:
        """Finish what is waiting, then end the thread. Blocks."""
        self._queue.close()
        if self._thread:
            self._thread.join()

    async def run(
        self, graph: Graph, pixels: Pixels, *, deadline: float = math.inf, stages: Stages | None = None
    ) -> Outputs:
        """Outputs for one image, all finite, without the batch dimension. `pixels` is uint8 (height, width, 3).

        `deadline` is in seconds of time.monotonic. A caller that is cancelled leaves the queue. Raises DeadlineExceeded
        instead of starting a run that cannot end by `deadline`, InferenceFailed or Overloaded when this image fails
        alone, Unavailable when the service stops or fails.
        """
        future: asyncio.Future[Outputs] = asyncio.get_running_loop().create_future()
        ticket = Ticket(graph=graph, pixels=pixels, deadline=deadline, future=future, queued=time.perf_counter())
        self._queue.put(ticket)
        outputs = await future
        if stages:
            stages.add("queue", ticket.queued, ticket.started)
            stages.add("inference", ticket.started, ticket.ended)
        return outputs

    def check(self) -> None:
        """Fail the service if a run hangs. To be called every WATCH_S, from a thread that runs no model."""
        if self._runner and self._runner.hangs(WATCH_S):
            self._fail(HUNG)

    async def watch(self) -> None:
        """Check until cancelled."""
        while True:
            await asyncio.sleep(WATCH_S)
            self.check()

    def _work(self, open_model: Callable[[], Model], opened: Future[Model]) -> None:
        yield_by(MODEL_NICENESS)
        try:
            model = open_model()
        except Exception as error:
            opened.set_exception(error)
            return
        self._runner = Runner(model=model, queue=self._queue, on_batch=self._on_batch)
        opened.set_result(model)
        try:
            self._runner.serve()
        except WrongAnswer as wrong:
            log.critical("%s", wrong)
            self._fail(WRONG)
        except BaseException:
            log.exception("the engine is broken")
            self._fail(BROKEN)

    def _fail(self, reason: str) -> None:
        self._lifecycle.fail(reason)  # first: a client that gets 503 finds /livez failed
        self._queue.fail(reason)
