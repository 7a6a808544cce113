"""Runs a bundle's graphs with ONNX Runtime. Knows arrays, not pictures, requests or queues."""

import ctypes
import logging
import time
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

from app.bundle import CLASSIFY_GRAPH, EXPLAIN_GRAPH

log = logging.getLogger(__name__)

Graph = Literal["classify", "explain"]
Outputs = dict[str, npt.NDArray[Any]]  # by the graph's output names, each with the batch first

FILES: dict[Graph, str] = {"classify": CLASSIFY_GRAPH, "explain": EXPLAIN_GRAPH}
MEASURE_S = 0.02  # a batch is run again until it has been measured for this long


class DeviceError(Exception):
    """The device that was asked for is not in use."""


class Latency(NamedTuple):
    """Measured at warm-up."""

    graph: Graph
    batch: int
    milliseconds: float


class Engine(Protocol):
    """What the batcher needs. One thread calls it."""

    def run(self, graph: Graph, images: npt.NDArray[np.uint8]) -> Outputs:
        """Outputs for `images`, uint8 (batch, height, width, 3)."""
        ...


class OnnxEngine:
    """The two graphs of a bundle as ONNX Runtime sessions."""

    def __init__(
        self, *, folder: Path, image_size: tuple[int, int], device: Literal["auto", "cuda", "cpu"], threads: int
    ) -> None:
        """Raises DeviceError when `device` is cuda and CUDA is not really in use."""
        cuda = device == "cuda" or (device == "auto" and _has_nvidia_driver())
        if cuda and hasattr(ort, "preload_dlls"):
            ort.preload_dlls()
        self._sessions: dict[Graph, ort.InferenceSession] = {}
        for graph, file in FILES.items():
            self._sessions[graph] = _session(str(folder / file), cuda=cuda, threads=threads)
        self._outputs = {graph: [output.name for output in s.get_outputs()] for graph, s in self._sessions.items()}
        self.provider: str = self._sessions["classify"].get_providers()[0]
        self._image_size = image_size
        if device == "cuda" and self.provider != "CUDAExecutionProvider":
            raise DeviceError(
                "ONNX Runtime cannot use CUDA here, which VIT_DEVICE=cuda asks for: check driver and libraries"
            )
        log.info("model runs on %s", self.provider)

    def run(self, graph: Graph, images: npt.NDArray[np.uint8]) -> Outputs:
        session = self._sessions[graph]
        names = self._outputs[graph]
        return dict(zip(names, session.run(names, {"images": images}), strict=True))

    def warm_up(self, max_batch: int) -> list[Latency]:
        """Run both graphs at every power of two up to `max_batch`, and at `max_batch`; the measured latencies."""
        buckets = sorted({min(2**power, max_batch) for power in range(max_batch.bit_length() + 1)})
        return [self._measure(graph, batch) for graph in FILES for batch in buckets]

    def _measure(self, graph: Graph, batch: int) -> Latency:
        images = np.zeros((batch, *self._image_size, 3), dtype=np.uint8)
        seconds: list[float] = []
        while sum(seconds) < MEASURE_S:
            start = time.perf_counter()
            self.run(graph, images)
            seconds.append(time.perf_counter() - start)
        return Latency(graph, batch, round(1000 * min(seconds), 3))


def _has_nvidia_driver() -> bool:
    """Asked before ONNX Runtime is, which answers a missing driver with pages of errors."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return "CUDAExecutionProvider" in ort.get_available_providers()


def _session(path: str, *, cuda: bool, threads: int) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # a provider that cannot load is reported by the check on get_providers
    # Spinning threads would take the cores that decode the next pictures.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    providers = ["CUDAExecutionProvider", "CPUExecutionProvider"] if cuda else ["CPUExecutionProvider"]
    return ort.InferenceSession(path, options, providers=providers)
