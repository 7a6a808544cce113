"""Both graphs in one, as CPUs run it, so that weights are held once: `combined.onnx`.

Its inputs are `images`; `asked`, the classes to explain, where the model has any; and `explain`, which says which graph
to run. Its output has a row for each image: all outputs of that graph, flat and side by side, because OpenVINO 2026.4
refuses a branch that has an output for each of them.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from app.inference.engine import GRAPHS, Classes, Engine, Graph, Images, Outputs, Plan, fill_classes

Shapes = Mapping[str, tuple[int, ...]]  # of one image's outputs of the explaining graph, in their order


class CombinedEngine(Engine):
    """An engine that runs the combined graph. A run side by side has one image."""

    shapes: Shapes

    def warm_up(self, check: Callable[[Plan], None]) -> None:
        for plan in (Plan(graph, 1) for graph in GRAPHS):
            check(plan)
            check(plan)
        if self.side_by_side > 1:
            with ThreadPoolExecutor(self.side_by_side) as threads:  # so that each of them is checked
                for _ in range(2):
                    list(threads.map(check, [Plan("classify", 1, beside=True)] * self.side_by_side))

    def run(self, graph: Graph, images: Images, classes: Classes = (), *, beside: bool = False) -> Outputs:
        """The outputs are views of the rows: the lean graph has only the first of `shapes`."""
        batch = images[0][np.newaxis] if len(images) == 1 else np.stack(list(images))  # a single image is not copied
        inputs: dict[str, npt.NDArray[Any]] = {"images": batch, "explain": np.array(graph == "explain")}
        if explained := self.shapes.get("classes"):
            inputs["asked"] = np.empty((len(batch), *explained), np.int64)
            fill_classes(inputs["asked"], classes)
        rows = self._rows(inputs, beside=beside)
        outputs: Outputs = {}
        start = 0
        for name, shape in self.shapes.items():
            if start == rows.shape[1]:
                break
            end = start + prod(shape)
            outputs[name] = rows[:, start:end].reshape(len(rows), *shape)
            start = end
        if "classes" in outputs:
            outputs["classes"] = outputs["classes"].astype(np.int64)
        return outputs

    @abstractmethod
    def _rows(self, inputs: dict[str, npt.NDArray[Any]], *, beside: bool) -> npt.NDArray[np.float32]:
        """(images, numbers), which stay as they are in later runs."""
