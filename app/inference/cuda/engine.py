"""Runs a bundle's graphs on an NVIDIA GPU: a batch is padded to the next of the sizes that were recorded."""

import logging
import re
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

from app.bundle import GRAPH_FILES, WEIGHTS, Graph, Precision
from app.inference.cuda.recording import DTYPES, Recording
from app.inference.engine import (
    Asked,
    Check,
    DeviceError,
    Engine,
    Images,
    Layout,
    Outputs,
    failures_as_device_errors,
    fault_of,
    fill,
)
from app.inference.known_answer import BY_CLASS, WrongAnswer
from app.machine import count_gpus

log = logging.getLogger(__name__)

PROVIDER_OPTIONS = {
    "enable_cuda_graph": "1",  # this also refuses a session in which a node that computes would run on the CPU
    "arena_extend_strategy": "kSameAsRequested",  # all memory is taken in the warm-up: powers of two would waste some
    "cudnn_conv_algo_search": "HEURISTIC",  # for the stem of a hybrid; the default tries all algorithms at each size
}
OLDEST_RUNTIME = (1, 31, 1)  # before, a replay may read staging buffers of another run (microsoft/onnxruntime#32121)
REPLAY_RATIO = 1e-2  # of an output's largest number, that a replay may differ by: kernels may add in another order
SHIFT_PX = 5  # between the images that replays are compared with
TOO_SMALL = "The GPU has too little memory for this model"
UNUSABLE = "ONNX Runtime cannot use CUDA here"


class CudaEngine(Engine):
    """The graphs of a bundle on one GPU. The thread that warms it up has to call `run`."""

    provider = "CUDAExecutionProvider"

    def __init__(
        self,
        *,
        folder: Path,
        layout: Layout,
        precision: Precision,
        max_batch: int,
        memory_bytes: int = 0,
    ) -> None:
        """`memory_bytes` is what the model may take of the GPU's memory (0: all).

        Raises DeviceError when ONNX Runtime cannot use CUDA, or has fallen back to the CPU.
        """
        self.computes_in: Precision = precision
        self.layout = layout
        _check_runtime()
        _load_libraries()
        # TF32 has as many digits as fp16, and would round the numbers of other bundles
        self._options = PROVIDER_OPTIONS | {"use_tf32": str(int(precision == "fp16"))}
        if memory_bytes:
            self._options["gpu_mem_limit"] = str(
                _memory_of_a_graph(memory_bytes, (folder / WEIGHTS).stat().st_size, graphs=len(layout))
            )
        with failures_as_device_errors(UNUSABLE, of_memory=TOO_SMALL):
            self._sessions = {graph: self._session(folder / GRAPH_FILES[graph]) for graph in layout}
        if any(session.get_providers()[0] != self.provider for session in self._sessions.values()):
            raise DeviceError(UNUSABLE)
        self._recordings: dict[tuple[Graph, int], Recording] = {}
        self._inputs = {
            source.name: np.zeros((max_batch, *source.shape[1:]), DTYPES[source.type])
            for source in self._sessions["explain"].get_inputs()
        }

    def run(self, graph: Graph, images: Images, asked: Sequence[Asked] = (), *, beside: bool = False) -> Outputs:
        count = len(images)
        np.stack(list(images), out=self._inputs["images"][:count])
        fill(self._inputs, asked)
        size = min(size for of, size in self._recordings if of == graph and size >= count)
        outputs = self._recordings[graph, size].run(self._first(size))
        return {name: rows[:count] for name, rows in outputs.items()}

    def warm_up(self, check: Check) -> None:
        """Record, check and measure every batch size that fits into the GPU's memory: powers of two, and the largest.
        While serving, nothing is recorded and no memory is allocated.

        The largest size comes first: the smaller ones then lie in the memory that it has taken. The known
        image checks each recording and, after all have been recorded, each replay. A replay is also compared with a run
        node by node: it may read what a later recording has overwritten (microsoft/onnxruntime#32121).
        Raises DeviceError when a graph cannot be recorded, WrongAnswer when a run computes wrong numbers.
        """
        largest = len(self._inputs["images"])
        sizes = sorted({min(2**power, largest) for power in range(largest.bit_length() + 1)}, reverse=True)
        with failures_as_device_errors(UNUSABLE, of_memory=TOO_SMALL):
            for graph in self.layout:
                for size in sizes:
                    self._record(graph, size, check)
            for (graph, size), recording in self._recordings.items():
                self._compare(recording, graph, size)
                check(graph, size)

    def _record(self, graph: Graph, size: int, check: Check) -> None:
        try:
            self._recordings[graph, size] = Recording(session=self._sessions[graph], size=size)
            check(graph, size)
        except Exception as error:
            if size == 1 or fault_of(error) != "memory":
                raise
            if recording := self._recordings.pop((graph, size), None):
                recording.release()
            log.warning("the GPU has too little memory to run %d images at once in the %s graph", size, graph)

    def _compare(self, recording: Recording, graph: Graph, size: int) -> None:
        """Raises WrongAnswer when a replay and a run node by node differ for images that are all different: those of
        the last run, shifted.
        """
        pixels = self._inputs["images"]
        pixels[:size] = [np.roll(pixels[0], SHIFT_PX * row, axis=1) for row in range(size)]
        fill(self._inputs, ())
        inputs = self._first(size)
        expected = recording.run(inputs, plainly=True)
        for name, replayed in recording.run(inputs).items():
            if name in ("classes", *BY_CLASS):  # nearly tied classes may change places
                continue
            apart = np.abs(replayed.astype(np.float64) - expected[name]).max()
            if not apart <= REPLAY_RATIO * np.abs(expected[name]).max():
                raise WrongAnswer(
                    f"The model computes wrong numbers on {self.provider}: {name} of the {graph} graph differs by "
                    f"{apart:.1e} between a recorded run of {size} images and a run node by node"
                )

    def _first(self, size: int) -> dict[str, npt.NDArray[Any]]:
        return {name: rows[:size] for name, rows in self._inputs.items()}

    def _session(self, file: Path) -> ort.InferenceSession:
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1  # only nodes that compute shapes run on the CPU
        options.enable_mem_pattern = False  # it would move buffers between the runs that precede the recording
        options.log_severity_level = 3  # __init__ reports a provider that cannot load
        options.add_session_config_entry("session.use_device_allocator_for_initializers", "1")
        return ort.InferenceSession(str(file), options, providers=[(self.provider, self._options)], enable_fallback=0)


def _check_runtime() -> None:
    """Raises DeviceError. ONNX Runtime itself would log pages of errors, or compute wrong numbers."""
    if not count_gpus():
        raise DeviceError(f"{UNUSABLE}: the NVIDIA driver is missing, or it finds no GPU")
    if CudaEngine.provider not in ort.get_available_providers():
        raise DeviceError(f"{UNUSABLE}: onnxruntime is installed in place of onnxruntime-gpu")
    if tuple(map(int, re.findall(r"\d+", ort.__version__)[:3])) < OLDEST_RUNTIME:
        oldest = ".".join(map(str, OLDEST_RUNTIME))
        raise DeviceError(f"A GPU needs ONNX Runtime {oldest} or newer, and this is {ort.__version__}")


def _load_libraries() -> None:
    """Raises DeviceError when a library of CUDA is missing, of which ONNX Runtime itself would log pages."""
    with redirect_stdout(StringIO()) as said:
        ort.preload_dlls()
    # With a path it is tried again without one.
    missing = ", ".join(re.findall(r"^Failed to load ([^/\s]+):", said.getvalue(), re.MULTILINE))
    if missing:
        installed = "the extra cuda, or `make serve DEVICE=cuda`, installs the libraries of CUDA"
        raise DeviceError(f"{UNUSABLE}: {missing} cannot be loaded; {installed}")


def _memory_of_a_graph(memory_bytes: int, weights_bytes: int, *, graphs: int) -> int:
    """Bytes for what lies between the layers of one of the graphs. Each has the weights once, beside that."""
    held = graphs * weights_bytes
    if memory_bytes <= held:
        raise DeviceError(
            f"VIT_GPU_MEMORY_BYTES is {memory_bytes}, and the weights of the {graphs} graphs alone take {held}"
        )
    return (memory_bytes - held) // graphs
