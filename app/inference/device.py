"""The warm model on the device and the engine that the settings ask for."""

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from app.bundle import COMBINED_GRAPH, ON_GPUS, WEIGHTS, Bundle
from app.inference.engine import DeviceError, Engine, failures_as_device_errors
from app.inference.known_answer import KnownImage
from app.inference.model import Model
from app.machine import allowed_cores, count_gpus, instructions
from app.settings import Settings

log = logging.getLogger(__name__)

SIDE_BY_SIDE, BATCH_ON_GPU = 8, 64  # images at once on a CPU and on a GPU, unless the settings have another
LARGEST_COPY = 256 * 2**20  # bytes of weights to hold twice, for runs side by side; with more, they are no faster
FOR_INT8 = {"avx512_vnni", "avx_vnni", "amx_int8", "asimddp"}  # instructions that add up products of 8 bits
NVIDIA_DRIVER = Path("/proc/driver/nvidia")  # of the kernel, so a container without the GPU's libraries sees it too


def open_model(*, settings: Settings, bundle: Bundle) -> Model:
    """A warm model, for the thread that this is called in, of files that were checked meanwhile. `auto` uses the CPU
    where CUDA does not work or computes wrong numbers, and warns of it where the machine has an NVIDIA GPU.

    Raises BundleError when a file of the bundle is damaged, DeviceError when the settings ask for a device or an engine
    that does not work, and its subclass WrongAnswer when it does not compute the known answer of the bundle.
    """
    log.info("checking the files of the bundle")
    with ThreadPoolExecutor(1) as checker:
        checked = checker.submit(bundle.check_files)
        try:
            model = _open(settings, bundle)
        finally:
            checked.result()  # a damaged file explains every other failure
    log.info("the model runs on %s, in %s", model.engine.provider, model.engine.computes_in)
    return model


def _open(settings: Settings, bundle: Bundle) -> Model:
    on_cpu = partial(_on_cpu, settings, bundle)
    if settings.device == "auto" and not (NVIDIA_DRIVER.exists() or count_gpus()):  # WSL 2 has no such file
        log.info("found no NVIDIA GPU, so the CPU is used")
    elif settings.device != "cpu":
        try:
            return _on_cuda(settings, bundle)
        except DeviceError as error:
            if settings.device == "cuda":
                raise
            log.warning("%s; the CPU is used instead", error)
    if settings.engine != "onnxruntime":
        try:
            with failures_as_device_errors("OpenVINO cannot run this bundle"):
                if not find_spec("openvino"):
                    raise DeviceError("OpenVINO is not installed")
                log.info("opening the model in OpenVINO")
                from app.inference.openvino import OpenVinoEngine  # each engine takes a moment to import, and memory

                return on_cpu(OpenVinoEngine)
        except DeviceError as error:
            if settings.engine == "openvino":
                raise
            log.warning("%s; ONNX Runtime is used instead", error)
    with failures_as_device_errors("ONNX Runtime cannot run this bundle"):
        log.info("opening the model in ONNX Runtime")
        from app.inference.onnxruntime import OnnxEngine

        return on_cpu(OnnxEngine)


def _on_cuda(settings: Settings, bundle: Bundle) -> Model:
    log.info("opening the model on the GPU")
    from app.inference.cuda.engine import CudaEngine

    manifest = bundle.manifest
    if manifest.precision not in ON_GPUS:
        raise DeviceError(f"This bundle is in {manifest.precision}, which only CPUs compute here: export it in fp16")
    engine = CudaEngine(
        folder=bundle.folder,
        layout=manifest.graphs,
        precision=manifest.precision,
        max_batch=settings.max_batch or BATCH_ON_GPU,
        memory_bytes=settings.gpu_memory_bytes,
    )
    log.info("recording the model's graphs, and asking each for the known answer")
    return _warm(engine, bundle)


def _on_cpu(settings: Settings, bundle: Bundle, kind: Callable[..., Engine]) -> Model:
    weights = (bundle.folder / WEIGHTS).stat().st_size
    manifest = bundle.manifest
    if manifest.precision == "int8" and (has := instructions()) and has.isdisjoint(FOR_INT8):
        log.warning("this processor has no VNNI, so it does not run a bundle in int8 faster than one in fp32")
    threads = settings.model_threads or allowed_cores()
    engine = kind(
        graph=bundle.folder / COMBINED_GRAPH,
        layout=manifest.graphs,
        precision=manifest.precision,
        threads=threads,
        side_by_side=min(threads, settings.max_batch or SIDE_BY_SIDE) if weights <= LARGEST_COPY else 1,
    )
    log.info("asking the model for the known answer")
    return _warm(engine, bundle)


def _warm(engine: Engine, bundle: Bundle) -> Model:
    model = Model(engine=engine, known=KnownImage(bundle.manifest.known_answer, bundle.manifest.image.size))
    model.warm_up()
    return model
