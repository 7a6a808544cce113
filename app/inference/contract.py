"""What an engine is: arrays in, arrays out. There are three, and none knows image files, requests or queues."""

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

Graph = Literal["classify", "explain"]
Computed = Literal["fp32", "bf16", "fp16", "int8"]
Pixels = npt.NDArray[np.uint8]
Images = Pixels | Sequence[Pixels]  # each (height, width, 3); as one array (images, height, width, 3)
Outputs = dict[str, npt.NDArray[Any]]  # by the graph's output names, each with the batch first


class Engine(Protocol):
    """A bundle on one device, for one thread. `classify` gives logits and embedding, `explain` every map too."""

    @property
    def provider(self) -> str:
        """What really runs the graphs."""
        ...

    @property
    def computes_in(self) -> Computed:
        """The numbers in which the blocks are really computed."""
        ...

    @property
    def pads(self) -> bool:
        """Whether `run` fills a batch up to the next size that was run before. Else each number of images is new."""
        ...

    def run(self, graph: Graph, images: Images) -> Outputs:
        """Outputs for `images`. They stay as they are in later runs."""
        ...

    def forget(self, graph: Graph, largest: int) -> None:
        """Free what is kept for batches of more than `largest` images: none will come."""
        ...
