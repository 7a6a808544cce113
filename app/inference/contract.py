"""What the rest of the service knows about an engine: arrays in, arrays out."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Graph = Literal["classify", "explain"]
Pixels = npt.NDArray[np.uint8]
Outputs = dict[str, npt.NDArray[Any]]  # by the graph's output names, each with the batch first


class Latency(NamedTuple):
    """Running mean over the batches of one size."""

    graph: Graph
    batch: int
    milliseconds: float


class Engine(Protocol):
    """Runs both graphs of one model."""

    @property
    def concurrency(self) -> int:
        """How many threads can call `run` at a time, including the one that opened the engine."""
        ...

    def best_batch(self, graph: Graph) -> int:
        """The largest batch that pays."""
        ...

    def expected(self, graph: Graph, images: int) -> float:
        """Seconds that a run is expected to take; 0 before anything has been measured."""
        ...

    def forbid(self, graph: Graph, images: int) -> int:
        """Never use this batch size or a larger one again. Returns the largest that is left, at least 1."""
        ...

    def run(self, graph: Graph, images: Pixels | Sequence[Pixels]) -> Outputs:
        """Outputs for `images`, each uint8 (height, width, 3)."""
        ...

    def probe(self, graph: Graph) -> Outputs:
        """Outputs for one blank image."""
        ...
