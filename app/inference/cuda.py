"""Runs a bundle's graphs on an NVIDIA GPU, each batch size as one CUDA graph.

A CUDA graph is a recorded run: it is replayed in one launch, at the addresses and with the shapes it was recorded with.
So every batch size has its own inputs and outputs on the GPU, and a batch is padded up to the next size. ONNX Runtime
keeps what it recorded for the recording thread alone, under a number from 1 on (0 stands for "no number given"), and
replays it whatever the shape: hence one thread for warm-up and serving, and a number for each size.
"""

import ctypes
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnxruntime as ort

from app.inference.contract import Graph, Outputs, Pixels
from app.inference.cpu import OnnxEngine
from app.inference.faults import DeviceError

log = logging.getLogger(__name__)

PROVIDER_OPTIONS = {
    "enable_cuda_graph": "1",  # and with it, no session where a node that computes is left to the CPU
    "arena_extend_strategy": "kSameAsRequested",  # all memory is taken at warm-up: powers of two would only waste it
    "use_tf32": "0",  # who exports in fp32 wants its numbers; the fast bundle is the one in fp16
    "cudnn_conv_algo_search": "HEURISTIC",  # of the stem of a hybrid; the default tries all of them at every new size
}
DTYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64}
UNUSABLE = "ONNX Runtime cannot use CUDA here: check driver and libraries"


class Recording:
    """One graph at one batch size: fixed buffers on the GPU, and the run that is recorded over them."""

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
        """Outputs for all of `pixels`, (size, height, width, 3). The first call records."""
        self._images.update_inplace(pixels)
        self._session.run_with_iobinding(self._binding, self._options)
        return {name: value.numpy() for name, value in self._outputs.items()}


class CudaEngine(OnnxEngine):
    """The two graphs of a bundle on the first GPU. The thread that warms it up is the one that calls `run`."""

    provider = "CUDAExecutionProvider"
    concurrency = 1  # a recording is replayed by the thread that made it

    def __init__(self, *, folder: Path, image_size: tuple[int, int], max_batch: int) -> None:
        """Raises DeviceError when CUDA is not really in use."""
        if not _has_nvidia_driver():
            raise DeviceError(UNUSABLE)
        if hasattr(ort, "preload_dlls"):
            ort.preload_dlls()
        with _failures_as_device_errors():
            super().__init__(folder=folder, image_size=image_size, threads=1, max_batch=max_batch)
        if any(session.get_providers()[0] != self.provider for session in self._sessions.values()):
            raise DeviceError(UNUSABLE)
        self._recordings: dict[tuple[Graph, int], Recording] = {}

    def warm_up(self) -> None:
        """Record and measure every batch size: while serving nothing is recorded and no memory is taken.

        Raises DeviceError when a graph cannot be recorded.
        """
        with _failures_as_device_errors():
            for graph, model in self._latency.items():
                for number, size in enumerate(model.sizes, start=1):
                    session = self._sessions[graph]
                    self._recordings[graph, size] = Recording(session=session, size=size, number=number)
                    self._measure(graph, size)
        _pin(self._pixels)

    def forbid(self, graph: Graph, images: int) -> int:
        """Gives back the GPU's memory for the sizes that are no longer made."""
        largest = super().forbid(graph, images)
        self._recordings = {key: r for key, r in self._recordings.items() if key[0] != graph or key[1] <= largest}
        return largest

    def _forward(self, graph: Graph, images: Pixels | Sequence[Pixels]) -> Outputs:
        count = len(images)
        np.stack(list(images), out=self._pixels[:count])
        size = next(size for size in self._latency[graph].sizes if size >= count)
        outputs = self._recordings[graph, size].replay(self._pixels[:size])
        return {name: rows[:count] for name, rows in outputs.items()}

    def _session(self, path: str) -> ort.InferenceSession:
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1  # only nodes that compute shapes are left to the CPU
        options.enable_mem_pattern = False  # it would move buffers between the runs that precede the recording
        options.log_severity_level = 3  # a provider that cannot load is reported by the check on get_providers
        options.add_session_config_entry("session.use_device_allocator_for_initializers", "1")
        return ort.InferenceSession(path, options, providers=[(self.provider, PROVIDER_OPTIONS)], enable_fallback=0)


@contextmanager
def _failures_as_device_errors() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # those of ONNX Runtime have no common base
        raise DeviceError(f"{UNUSABLE} ({error})") from error


def _on_gpu(shape: Sequence[int], dtype: type) -> ort.OrtValue:
    return ort.OrtValue.ortvalue_from_shape_and_type(list(shape), dtype, "cuda", 0)


def _has_nvidia_driver() -> bool:
    """Asked before ONNX Runtime is, which answers a missing driver with pages of errors."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return "CUDAExecutionProvider" in ort.get_available_providers()


def _pin(pixels: Pixels) -> None:
    """Lock the buffer's pages, so that the GPU fetches from it by itself. Copies work without it, slower."""
    address, size = ctypes.c_void_p(pixels.ctypes.data), ctypes.c_size_t(pixels.nbytes)
    if status := ctypes.CDLL("libcuda.so.1").cuMemHostRegister_v2(address, size, 0):
        log.warning("the input buffer could not be page-locked: CUDA error %d", status)
