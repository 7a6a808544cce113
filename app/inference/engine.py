"""What an engine is: arrays in, arrays out, and what can be wrong with it.

There are three, of which two run on a CPU, and none knows image files, requests or queues. ONNX Runtime raises the same
exception for nearly everything, so the text tells the faults apart (microsoft/onnxruntime#16307).
"""

import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from math import prod
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from app.bundle import Graph, Precision, Shapes
from app.errors import CannotStart

Pixels = npt.NDArray[np.uint8]
Images = Pixels | Sequence[Pixels]  # each (height, width, 3); as one array (images, height, width, 3)
Outputs = dict[str, npt.NDArray[Any]]  # by the graph's output names, each with the batch first except for one image's
Layout = Mapping[Graph, Shapes]  # the outputs of each graph that the bundle has
MOST_LIKELY_CLASS = -1  # in the k-th place: the k-th most likely
DIRECTION = -2  # in the k-th place: the inner product of the embedding with the k-th direction
Fault = Literal["memory", "fatal", "other"]
NO_DIRECTIONS: npt.NDArray[np.float32] = np.zeros((0, 0), np.float32)

MEMORY = re.compile(
    r"(failed to|cannot) allocate memory|out of memory|bad[ _]alloc(ation)?\b|smaller than requested bytes"
    r"|cudaErrorMemoryAllocation|CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED",
    re.IGNORECASE,
)
# CUDA errors after which every call in the process fails, or returns wrong numbers ("sticky"), by number and name:
# https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html. A lost device is just as final.
STICKY = {
    3: "InitializationError",
    4: "CudartUnloading",
    46: "DevicesUnavailable",
    100: "NoDevice",
    201: "DeviceUninitialized",
    214: "ECCUncorrectable",
    220: "NvlinkUncorrectable",
    700: "IllegalAddress",
    702: "LaunchTimeout",
    709: "ContextIsDestroyed",
    710: "Assert",
    714: "HardwareStackError",
    715: "IllegalInstruction",
    716: "MisalignedAddress",
    717: "InvalidAddressSpace",
    718: "InvalidPc",
    719: "LaunchFailure",
    999: "Unknown",
}
FATAL = re.compile(
    rf"CUDA (failure|error):? \(?({'|'.join(map(str, STICKY))})\b"
    rf"|cudaError({'|'.join(STICKY.values())})\b"
    r"|illegal memory access|unspecified launch failure|device-side assert|uncorrectable ECC|fallen off the bus|\bXid\b"
    r"|(CUBLAS|CUDNN)_STATUS_EXECUTION_FAILED",
    re.IGNORECASE,
)


class Asked(NamedTuple):
    """What to explain of an image: K places, of which the first ones are given."""

    classes: Sequence[int] = ()  # or MOST_LIKELY_CLASS, or DIRECTION
    directions: npt.NDArray[np.float32] = NO_DIRECTIONS  # (n, features), each in its place


NOTHING_ASKED = Asked()


class Check(Protocol):
    """Runs the known image so many times at once, and raises WrongAnswer."""

    def __call__(self, graph: Graph, images: int = 1, *, beside: bool = False) -> None: ...


class Engine(Protocol):
    """A bundle on one device. `classify` gives logits and embedding, `explain` every map too, and `tokens` the tokens
    in place of maps.
    """

    provider: str  # what really runs the graphs
    computes_in: Precision  # the numbers in which the blocks are really computed
    side_by_side: int = 1  # runs of one image each, in graphs without maps; 1: one run follows another
    layout: Layout

    def warm_up(self, check: Check) -> None:
        """Call `check` for each way to run, twice for each that is measured: the first run also allocates memory."""
        ...

    def run(self, graph: Graph, images: Images, asked: Sequence[Asked] = (), *, beside: bool = False) -> Outputs:
        """Outputs for `images`. They stay as they are in later runs. A run `beside` others has its share of the cores;
        else it has all of them, and nothing may run beside it. The graph `explain` has evidence for what is `asked` of
        each image, and in the places after that for the most likely classes; a model without a head for directions
        alone.
        """
        ...


class CpuEngine(Engine):
    """Runs all graphs in one, `combined.onnx`, so that weights are held once. A run side by side has one image.

    The inputs of this graph are `images`; `asked`, the classes to explain, where the model has any; and `explain` and
    `with_tokens`, which say which graph to run. Its output has a row for each image: all outputs of that graph, flat
    and side by side, because OpenVINO 2026.4 refuses a branch that has an output for each of them.
    """

    takes_directions: bool  # graphs of before do not

    def warm_up(self, check: Check) -> None:
        for graph in self.layout:
            check(graph)
            check(graph)
        if self.side_by_side > 1:
            with ThreadPoolExecutor(self.side_by_side) as threads:  # so that each of them is checked
                for graph in [graph for graph in self.layout if runs_beside(graph)] * 2:
                    list(threads.map(partial(check, beside=True), [graph] * self.side_by_side))

    def run(self, graph: Graph, images: Images, asked: Sequence[Asked] = (), *, beside: bool = False) -> Outputs:
        """The outputs are views of the rows."""
        batch = images[0][np.newaxis] if len(images) == 1 else np.stack(list(images))  # a single image is not copied
        inputs: dict[str, npt.NDArray[Any]] = {"images": batch, "explain": np.array(graph == "explain")}
        if "tokens" in self.layout:
            inputs["with_tokens"] = np.array(graph == "tokens")
        if explained := self.layout["explain"].get("classes"):
            inputs["asked"] = np.empty((len(batch), *explained), np.int64)
        if self.takes_directions:
            inputs["directions"] = np.empty((len(batch), *directions_of(self.layout)), np.float32)
        fill(inputs, asked)
        rows = self._rows(inputs, beside=beside)
        outputs: Outputs = {}
        start = 0
        for name, shape in self.layout[graph].items():
            end = start + prod(shape)
            outputs[name] = rows[:, start:end].reshape(len(rows), *shape)
            start = end
        if "classes" in outputs:
            outputs["classes"] = outputs["classes"].astype(np.int64)
        return outputs

    @abstractmethod
    def _rows(self, inputs: dict[str, npt.NDArray[Any]], *, beside: bool) -> npt.NDArray[np.float32]:
        """(images, numbers), which stay as they are in later runs."""


def runs_beside(graph: Graph) -> bool:
    """Whether runs of a graph share the cores, where a processor has runs side by side. Maps are not in a hurry."""
    return graph != "explain"


def fill(inputs: Mapping[str, npt.NDArray[Any]], asked: Sequence[Asked]) -> None:
    """Write what is asked to those of the `inputs` that the graph takes: `asked` (images, K), int64, and `directions`
    (images, K, features), float32, of which the others are 0.
    """
    if "asked" in inputs:
        inputs["asked"][:] = MOST_LIKELY_CLASS
        for row, of_image in zip(inputs["asked"], asked, strict=False):
            row[: len(of_image.classes)] = of_image.classes
    if "directions" in inputs:
        inputs["directions"][:] = 0
        for row, of_image in zip(inputs["directions"], asked, strict=False):
            if len(of_image.directions):
                row[: len(of_image.directions)] = of_image.directions


def directions_of(layout: Layout) -> tuple[int, int]:
    """How many directions an explaining graph takes for an image, and of how many numbers."""
    return layout["explain"]["evidence"][0], layout["explain"]["embedding"][0]


class DeviceError(CannotStart):
    """The device in the settings cannot be used."""


@contextmanager
def failures_as_device_errors(sentence: str, *, of_memory: str = "") -> Iterator[None]:
    """Each failure inside is a DeviceError with its own words after `sentence`, or after another if memory is short."""
    try:
        yield
    except DeviceError:
        raise
    except Exception as error:  # those of ONNX Runtime have no common base
        said = of_memory if of_memory and fault_of(error) == "memory" else sentence
        raise DeviceError(f"{said} ({error})") from error


def fault_of(error: BaseException) -> Fault:
    """memory: the batch did not fit into the free memory. fatal: only a new process helps. other: perhaps the image."""
    if FATAL.search(str(error)):
        return "fatal"
    if isinstance(error, MemoryError) or MEMORY.search(str(error)):
        return "memory"
    return "other"
