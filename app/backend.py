"""What decodes images and runs the model: two things that take seconds to start, and start side by side.

Nothing of HTTP is imported here, so a server can import FastAPI meanwhile.
"""

import asyncio
import logging
import os
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from app.bundle import load_bundle
from app.errors import CannotStart
from app.images.preprocessor import open_preprocessor
from app.images.resize import fast
from app.inference.batcher import Batcher
from app.inference.device import open_model
from app.inference.familiarity import NO_IMAGES, open_familiarity
from app.inference.model import Model
from app.inference.phrases import Phrases, Tower
from app.inference.runner import Runner
from app.lifecycle import Lifecycle
from app.machine import allowed_cores
from app.settings import Settings
from app.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

WATCH_S = 0.5
CHANGED = "The file of the model's weights was changed. The service is about to be restarted."


class Backend:
    """The parts below the HTTP service, begun when this is made, and ready when `model` returns."""

    def __init__(self, *, settings: Settings) -> None:
        """Raises BundleError when there is no bundle, and CannotStart when it has to refuse unfamiliar images and
        does not know which are; what else can be wrong is raised by `model`.
        """
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # ONNX Runtime reads it only when it is imported
        self.lifecycle, self.metrics = Lifecycle(), Metrics()
        log.info("reading %s", settings.bundle)
        self.bundle = load_bundle(settings.bundle)
        if settings.unfamiliar == "refuse" and not self.bundle.manifest.familiarity:
            raise CannotStart(f"VIT_UNFAMILIAR=refuse needs a bundle that knows its images, and {NO_IMAGES}")
        self.familiarity = open_familiarity(self.bundle)
        self.preprocessor = open_preprocessor(settings=settings, spec=self.bundle.manifest.image)
        self.batcher = Batcher()
        self.runner = Runner(batcher=self.batcher, lifecycle=self.lifecycle, on_batch=self.metrics.batch)
        self.metrics.cpu.others = lambda: self.preprocessor.pool.processes().all
        opening = partial(open_model, settings=settings, bundle=self.bundle)
        log.info("starting the processes that decode images")
        fast()  # so that the log says when Pillow has to resize: decoders have no log
        starters = ThreadPoolExecutor(3, thread_name_prefix="start")
        self._decoders: Future[None] = starters.submit(self.preprocessor.pool.start)
        self._model: Future[Model] = starters.submit(self.runner.start, opening)
        self.phrases = Phrases()
        self._text: Future[Tower | None] = starters.submit(self._open_text, settings.model_threads or allowed_cores())
        starters.shutdown(wait=False)

    def model(self) -> Model:
        """The warm model, when the processes that decode are there too.

        Raises CannotStart, and OSError when no process can be started.
        """
        model = self._model.result()  # first: a damaged file explains every other failure
        self._decoders.result()
        self.phrases.tower = self._text.result()
        return model

    def _open_text(self, threads: int) -> Tower | None:
        if not self.bundle.manifest.text:
            return None
        from app.inference.text import open_text_tower  # needs ONNX Runtime, which takes memory

        return open_text_tower(self.bundle, threads=threads)

    async def watch_weights(self) -> None:
        """Fail the service when the file of the weights is written to. Runs until then, or until cancelled."""
        in_a_thread = asyncio.get_running_loop().run_in_executor  # the file may lie on a network
        changed, unseen = False, ""
        while not changed:
            await asyncio.sleep(WATCH_S)
            try:
                changed, reason = await in_a_thread(None, self.bundle.weights_changed), ""
            except OSError as error:  # the model may have all of it in memory
                reason = error.strerror or str(error)
            if reason and reason != unseen:
                log.warning("the file of the model's weights cannot be watched: %s", reason)
            unseen = reason
        self.runner.fail(CHANGED)

    def stop(self) -> None:
        """Finish what waits for the model, then end threads and processes. Blocks."""
        self._model.exception()
        self.runner.stop()
        self._text.exception()
        self.phrases.close()
        self._decoders.exception()
        self.preprocessor.pool.stop()
