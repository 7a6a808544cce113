"""Runs a bundle's graphs on an NVIDIA GPU, each batch size as one CUDA graph.

A CUDA graph is a recorded run. It is replayed in one launch, with the addresses and shapes of the recording. So every
batch size has its own inputs and outputs on the GPU, and a batch is padded to the next size. ONNX Runtime keeps a
recording for the thread that made it, under a number from 1 on (0 means "no number given"). It does not check the shape
when it replays. Therefore one thread does both the warm-up and the serving, and each size has its own number.
"""

import ctypes
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnxruntime as ort

from app.bundle import KnownAnswer
from app.inference.contract import Gear, Graph, Outputs, Pixels
from app.inference.cpu import OnnxEngine
from app.inference.faults import DeviceError
from app.inference.gears import Gears

log = logging.getLogger(__name__)

PROVIDER_OPTIONS = {
    "enable_cuda_graph": "1",  # this also refuses a session in which a node that computes would run on the CPU
    "arena_extend_strategy": "kSameAsRequested",  # all memory is taken in the warm-up: powers of two would waste some
    "use_tf32": "0",  # it would round the numbers of an fp32 bundle; for speed, export in fp16
    "cudnn_conv_algo_search": "HEURISTIC",  # for the stem of a hybrid; the default tries all algorithms at each size
}
DTYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64}
UNUSABLE = "ONNX Runtime cannot use CUDA here: check driver and libraries"


class Recording:
    """One graph at one batch size: fixed buffers on the GPU, and the recorded run that uses them."""

    def __init__(self, *, session: ort.InferenceSession, size: int, number: int) -> None:
        self._session = session
        self._options = ort.RunOptions()
        self._options.add_run_config_entry("gpu_graph_id", str(number))
        self._binding = session.io_binding()
        (images,) = session.get_inputs()
        self._images = _on_gpu((size, *images.shape[1:]), np.uint8)
        self._binding.bind_ortvalue_input(images.name, self._images)
        self._outputs = {o.name: _on_gpu((size, *o.shape[1:]), DTYPES[o.type]) for o in session.get_outputs()}
        for name, value in self._outputs.items():
            self._binding.bind_ortvalue_output(name, value)

    def replay(self, pixels: Pixels) -> Outputs:
        """Outputs for all of `pixels`, uint8 (size, height, width, 3). The first call records."""
        self._images.update_inplace(pixels)
        self._session.run_with_iobinding(self._binding, self._options)
        return {name: value.numpy() for name, value in self._outputs.items()}


class CudaEngine(OnnxEngine):
    """The two graphs of a bundle on the first GPU. The thread that warms it up has to call `run`."""

    provider = "CUDAExecutionProvider"

    def __init__(
        self, *, folder: Path, image_size: tuple[int, int], max_batch: int, known_answer: KnownAnswer | None = None
    ) -> None:
        """Raises DeviceError when ONNX Runtime cannot use CUDA, or has fallen back to the CPU."""
        if not _has_nvidia_driver():
            raise DeviceError(UNUSABLE)
        if hasattr(ort, "preload_dlls"):
            ort.preload_dlls()
        with _failures_as_device_errors():
            super().__init__(
                folder=folder,
                image_size=image_size,
                gears=Gears(cores=1, wide_runs=1),  # only the thread that made a recording can replay it
                max_batch=max_batch,
                known_answer=known_answer,
            )
        if any(session.get_providers()[0] != self.provider for session in self._sessions.values()):
            raise DeviceError(UNUSABLE)
        self._recordings: dict[tuple[Graph, int], Recording] = {}
        self._pixels = np.zeros((max_batch, *image_size, 3), dtype=np.uint8)

    def warm_up(self) -> None:
        """Record and measure every batch size. While serving, nothing is recorded and no memory is allocated.

        The known answer is asked in each recording, and in each replay after all have been recorded: a replay may read
        buffers that a later recording has taken (microsoft/onnxruntime#32121).
        Raises DeviceError when a graph cannot be recorded, WrongAnswer when a run computes wrong numbers.
        """
        with _failures_as_device_errors():
            for (graph, gear), model in self._latency.items():
                for number, size in enumerate(model.sizes, start=1):
                    session = self._sessions[graph, gear]
                    self._recordings[graph, size] = Recording(session=session, size=size, number=number)
                    self._ask(graph, gear, size)
            for graph, size in self._recordings:
                self._ask(graph, "wide", size)
        _pin(self._pixels)

    def forbid(self, graph: Graph, images: int) -> int:
        """Also frees the GPU's memory for the sizes that are no longer used."""
        largest = super().forbid(graph, images)
        self._recordings = {key: r for key, r in self._recordings.items() if key[0] != graph or key[1] <= largest}
        return largest

    def _forward(self, graph: Graph, gear: Gear, images: Pixels | Sequence[Pixels]) -> Outputs:
        count = len(images)
        np.stack(list(images), out=self._pixels[:count])
        size = next(size for size in self._latency[graph, gear].sizes if size >= count)
        outputs = self._recordings[graph, size].replay(self._pixels[:size])
        return {name: rows[:count] for name, rows in outputs.items()}

    def _session(self, file: Path, threads: int) -> ort.InferenceSession:
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads  # only nodes that compute shapes run on the CPU
        options.enable_mem_pattern = False  # it would move buffers between the runs that precede the recording
        options.log_severity_level = 3  # __init__ reports a provider that cannot load
        options.add_session_config_entry("session.use_device_allocator_for_initializers", "1")
        return ort.InferenceSession(
            str(file), options, providers=[(self.provider, PROVIDER_OPTIONS)], enable_fallback=0
        )


@contextmanager
def _failures_as_device_errors() -> Iterator[None]:
    try:
        yield
    except DeviceError:
        raise
    except Exception as error:  # those of ONNX Runtime have no common base
        raise DeviceError(f"{UNUSABLE} ({error})") from error


def _on_gpu(shape: Sequence[int], dtype: type) -> ort.OrtValue:
    return ort.OrtValue.ortvalue_from_shape_and_type(list(shape), dtype, "cuda", 0)


def _has_nvidia_driver() -> bool:
    """Checked first, because ONNX Runtime logs pages of errors when the driver is missing."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return "CUDAExecutionProvider" in ort.get_available_providers()


def _pin(pixels: Pixels) -> None:
    """Lock the buffer's pages, so that the GPU can read them directly. Without this, copies are slower."""
    address, size = ctypes.c_void_p(pixels.ctypes.data), ctypes.c_size_t(pixels.nbytes)
    if status := ctypes.CDLL("libcuda.so.1").cuMemHostRegister_v2(address, size, 0):
        log.warning("the input buffer could not be page-locked: CUDA error %d", status)
