"""What the rest of the service knows of an engine: arrays in, arrays out."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Graph = Literal["classify", "explain"]
Gear = Literal["wide", "narrow"]  # app/inference/gears.py
Pixels = npt.NDArray[np.uint8]
Outputs = dict[str, npt.NDArray[Any]]  # by the graph's output names, each with the batch first


class Plan(NamedTuple):
    """A run of so many images, or fewer."""

    gear: Gear
    images: int


class Latency(NamedTuple):
    """Running mean over the batches of one size in one gear."""

    graph: Graph
    gear: Gear
    batch: int
    milliseconds: float


class Engine(Protocol):
    """A bundle's two graphs on one device."""

    @property
    def provider(self) -> str:
        """ONNX Runtime's name for the execution provider that is really in use."""
        ...

    @property
    def max_batch(self) -> int:
        """Most images in a run, as far as the settings say. Memory may allow fewer."""
        ...

    @property
    def concurrency(self) -> int:
        """How many threads may call `run` at a time, the one that opened the engine among them."""
        ...

    def plan(self, graph: Graph, *, waiting: int, running: Sequence[Plan]) -> Plan | None:
        """The next run, or None if one of those under way has to end before. `waiting` images are in no run yet, of
        this graph or of another.
        """
        ...

    def best_batch(self, graph: Graph) -> int:
        """Most images worth running at once."""
        ...

    def expected(self, graph: Graph, images: int, gear: Gear = "wide") -> float:
        """Seconds that a run will take, as far as is known; 0 where nothing is."""
        ...

    def forbid(self, graph: Graph, images: int) -> int:
        """Make no batch of this size or larger any more. The largest that is left, 1 at least."""
        ...

    def run(self, graph: Graph, images: Pixels | Sequence[Pixels], gear: Gear = "wide") -> Outputs:
        """Outputs for `images`, each uint8 (height, width, 3)."""
        ...

    def ask_once(self, graph: Graph, images: int, gear: Gear = "wide") -> None:
        """Ask the known answer in a batch of the size that holds `images`, if this gear was not asked it before.

        Raises WrongAnswer.
        """
        ...

    def probe(self, graph: Graph) -> None:
        """Ask the known answer with one image in each gear. Raises WrongAnswer."""
        ...

    def deviation(self) -> dict[Graph, float]:
        """The largest difference from the known answer so far, as a share of what is allowed."""
        ...

    def latency(self) -> list[Latency]:
        """What has been measured so far, at warm-up and while serving."""
        ...
