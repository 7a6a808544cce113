"""What an engine is: arrays in, arrays out, and what can be wrong with it.

There are three, and none knows image files, requests or queues. ONNX Runtime raises the same exception for nearly
everything, so the text tells the faults apart (microsoft/onnxruntime#16307).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, Protocol, get_args

import numpy as np
import numpy.typing as npt

from app.bundle import CLASSIFY_GRAPH, EXPLAIN_GRAPH, Precision
from app.errors import CannotStart

Graph = Literal["classify", "explain"]
GRAPHS: tuple[Graph, ...] = get_args(Graph)
GRAPH_FILES: dict[Graph, str] = {"classify": CLASSIFY_GRAPH, "explain": EXPLAIN_GRAPH}
Pixels = npt.NDArray[np.uint8]
Images = Pixels | Sequence[Pixels]  # each (height, width, 3); as one array (images, height, width, 3)
Classes = Sequence[Sequence[int]]  # of each image, those to explain, as far as any are given
Outputs = dict[str, npt.NDArray[Any]]  # by the graph's output names, each with the batch first except for one image's
MOST_LIKELY_CLASS = -1  # in the k-th place: the k-th most likely
Fault = Literal["memory", "fatal", "other"]

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


class Plan(NamedTuple):
    """One run, before it begins."""

    graph: Graph
    images: int
    beside: bool = False  # others, on its share of the cores; else it has all of them, and nothing runs beside it


class Engine(Protocol):
    """A bundle on one device. `classify` gives logits and embedding, `explain` every map too."""

    provider: str  # what really runs the graphs
    computes_in: Precision  # the numbers in which the blocks are really computed
    side_by_side: int = 1  # runs of one image each, in the graph `classify`; 1: one run follows another

    def warm_up(self, check: Callable[[Plan], None]) -> None:
        """Call `check` with each way to run, which runs it and raises WrongAnswer. Twice with each that is measured:
        the first run also allocates memory.
        """
        ...

    def run(self, graph: Graph, images: Images, classes: Classes = (), *, beside: bool = False) -> Outputs:
        """Outputs for `images`. They stay as they are in later runs. The graph `explain` has evidence for K classes of
        each image: the `classes` given, of which MOST_LIKELY_CLASS stands for one by its place, and in the places after
        them the most likely.
        """
        ...


def fill_classes(places: npt.NDArray[np.int64], classes: Classes) -> None:
    """Write what an explaining graph takes to `places` (images, K)."""
    places[:] = MOST_LIKELY_CLASS
    for row, given in zip(places, classes, strict=False):
        row[: len(given)] = given


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
