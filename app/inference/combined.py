"""Both graphs in one, as CPUs run it, so that weights are held once: `combined.onnx`.

Its inputs are `images`, and `explain`, which says which graph to run. Its output has a row for each image: all outputs
of that graph, flat and side by side, because OpenVINO 2026.4 refuses a branch that has an output for each of them.
"""

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from app.inference.engine import Graph, Images, Outputs

Shapes = Mapping[str, tuple[int, ...]]  # of one image's outputs of the explaining graph, in their order


def inputs(graph: Graph, images: Images) -> dict[str, npt.NDArray[Any]]:
    """What the combined graph reads. A single image is not copied."""
    batch = images[0][np.newaxis] if len(images) == 1 else np.stack(list(images))
    return {"images": batch, "explain": np.array(graph == "explain")}


def outputs(rows: npt.NDArray[np.float32], shapes: Shapes) -> Outputs:
    """The outputs that are in `rows` (images, numbers), as views: the lean graph has only the first of `shapes`."""
    found: Outputs = {}
    start = 0
    for name, shape in shapes.items():
        if start == rows.shape[1]:
            break
        end = start + prod(shape)
        found[name] = rows[:, start:end].reshape(len(rows), *shape)
        start = end
    if "classes" in found:
        found["classes"] = found["classes"].astype(np.int64)
    return found
