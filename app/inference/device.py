"""The engine for the device that the settings ask for."""

import logging
import math
from pathlib import Path

from app.bundle import Bundle
from app.inference.cpu import OnnxEngine
from app.inference.cuda import CudaEngine
from app.inference.faults import DeviceError
from app.inference.known_answer import WrongAnswer
from app.machine import allowed_cores
from app.settings import Settings

log = logging.getLogger(__name__)

NVIDIA_DRIVER = Path("/proc/driver/nvidia")  # of the kernel, so a container without the GPU's libraries sees it too


def open_engine(*, settings: Settings, bundle: Bundle, max_memory: float = math.inf) -> OnnxEngine:
    """A warm engine, for the thread that this is called in. `auto` uses the CPU where CUDA does not work or computes
    wrong numbers, and warns of it where the machine has an NVIDIA GPU. On the CPU, batches are so small that this
    process keeps within `max_memory` bytes.

    Raises DeviceError when the settings ask for CUDA and it does not work, and its subclass WrongAnswer when what the
    device computes is not the known answer of the bundle.
    """
    folder, manifest, max_batch = bundle.folder, bundle.manifest, settings.max_batch
    image_size, known_answer = manifest.image.size, manifest.known_answer
    if settings.device != "cpu":
        try:
            return _warm(
                CudaEngine(folder=folder, image_size=image_size, max_batch=max_batch, known_answer=known_answer)
            )
        except DeviceError as error:
            if settings.device == "cuda":
                raise
            if NVIDIA_DRIVER.exists() or isinstance(error, WrongAnswer):
                log.warning("%s; the CPU is used instead", error)
            else:
                log.info("found no NVIDIA GPU, so the CPU is used")
                log.debug("%s", error)
    threads = settings.model_threads or allowed_cores()
    return _warm(
        OnnxEngine(
            folder=folder,
            image_size=image_size,
            threads=threads,
            max_batch=max_batch,
            known_answer=known_answer,
            max_memory=max_memory,
        )
    )


def _warm(engine: OnnxEngine) -> OnnxEngine:
    engine.warm_up()
    log.info("the model runs on %s", engine.provider)
    return engine
