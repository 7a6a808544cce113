"""The engine for the device that the settings ask for."""

import logging
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from app.bundle import WEIGHTS, Bundle
from app.inference.cpu import FILES, RUNTIME, OnnxEngine, open_run, pack
from app.inference.cuda import CudaEngine
from app.inference.faults import DeviceError
from app.inference.gears import Gears, choose_lanes
from app.inference.known_answer import WrongAnswer
from app.inference.packed import PackedWeights, cache_folder
from app.machine import allowed_cores
from app.settings import Settings

log = logging.getLogger(__name__)

SHARE_FOR_GEARS = 0.5  # of the memory, which weights that are not packed may take for both gears
BATCH_ON_CPU, BATCH_ON_GPU = 8, 64  # largest, unless the settings have another
NVIDIA_DRIVER = Path("/proc/driver/nvidia")  # of the kernel, so a container without the GPU's libraries sees it too


def open_engine(
    *, settings: Settings, bundle: Bundle, max_memory: float = math.inf, wait: Callable[[], object] = lambda: None
) -> OnnxEngine:
    """A warm engine, for the thread that this is called in, of files that were checked meanwhile. `auto` uses the CPU
    where CUDA does not work or computes wrong numbers, and warns of it where the machine has an NVIDIA GPU. On the CPU,
    batches are so small that this process keeps within `max_memory` bytes. `wait` is called before the memory that runs
    take is measured: it returns when nothing else takes any.

    Raises BundleError when a file of the bundle is damaged, DeviceError when the settings ask for CUDA and it does not
    work, and its subclass WrongAnswer when what the device computes is not the known answer of the bundle.
    """
    opening = partial(_open, settings=settings, bundle=bundle, max_memory=max_memory, wait=wait)
    return _open_meanwhile(bundle.check_files, opening)


def packed_weights(settings: Settings, bundle: Bundle) -> PackedWeights | None:
    """The place of the bundle in the cache, if the settings name one."""
    cache = cache_folder(settings.cache)
    return PackedWeights(cache=cache, bundle=bundle, runtime=RUNTIME) if cache else None


def _open_meanwhile(check: Callable[[], None], open_it: Callable[[], OnnxEngine]) -> OnnxEngine:
    """Check files while an engine is opened. A damaged file explains every other failure."""
    with ThreadPoolExecutor(1) as checker:
        checked = checker.submit(check)
        try:
            return open_it()
        finally:
            checked.result()


def _open(*, settings: Settings, bundle: Bundle, max_memory: float, wait: Callable[[], object]) -> OnnxEngine:
    if settings.device != "cpu":
        try:
            return _open_on_cuda(settings, bundle)
        except DeviceError as error:
            if settings.device == "cuda":
                raise
            if NVIDIA_DRIVER.exists() or isinstance(error, WrongAnswer):
                log.warning("%s; the CPU is used instead", error)
            else:
                log.info("found no NVIDIA GPU, so the CPU is used")
                log.debug("%s", error)
    open_on_cpu = partial(_open_on_cpu, settings=settings, bundle=bundle, max_memory=max_memory, wait=wait)
    packed = packed_weights(settings, bundle)
    if packed and packed.find(pack):
        try:
            packed.check_graphs()
            return _open_meanwhile(packed.check, lambda: open_on_cpu(packed.folder, packed=True))
        except Exception as error:  # those of ONNX Runtime have no common base
            log.warning("the packed weights in %s are not used, and are removed: %s", packed.folder, error)
            packed.remove()
    return open_on_cpu(bundle.folder, packed=False)


def _open_on_cuda(settings: Settings, bundle: Bundle) -> OnnxEngine:
    manifest = bundle.manifest
    if manifest.precision == "int8":
        raise DeviceError("This bundle is in int8, which only CPUs compute here: export it in fp16 for a GPU")
    return _warm(
        CudaEngine(
            folder=bundle.folder,
            image_size=manifest.image.size,
            max_batch=settings.max_batch or BATCH_ON_GPU,
            known_answer=manifest.known_answer,
            gpu=settings.gpu,
            memory_bytes=settings.gpu_memory_bytes,
        )
    )


def _open_on_cpu(
    folder: Path,
    *,
    packed: bool,
    settings: Settings,
    bundle: Bundle,
    max_memory: float,
    wait: Callable[[], object],
) -> OnnxEngine:
    cores, image_size = settings.model_threads or allowed_cores(), bundle.manifest.image.size
    lanes = 1
    if packed or len(FILES) * 2 * (folder / WEIGHTS).stat().st_size < SHARE_FOR_GEARS * max_memory:
        lanes = choose_lanes(cores, partial(open_run, folder, image_size, packed=packed))
    engine = OnnxEngine(
        folder=folder,
        image_size=image_size,
        gears=Gears(cores=cores, lanes=lanes),
        packed=packed,
        max_batch=settings.max_batch or BATCH_ON_CPU,
        known_answer=bundle.manifest.known_answer,
        max_memory=max_memory,
    )
    wait()
    return _warm(engine)


def _warm(engine: OnnxEngine) -> OnnxEngine:
    engine.warm_up()
    log.info("the model runs on %s", engine.provider)
    return engine
