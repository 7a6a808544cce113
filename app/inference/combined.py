"""Both graphs in one, as CPUs run it, so that weights are held once: `combined.onnx`.

Its inputs are `images`, and `explain`, which says whether to compute the maps too. Its outputs are those of the lean
graph, `classes`, and `maps`: all others of the explaining graph, flat and side by side. OpenVINO 2026.4 refuses a
branch that has an output for each of them.
"""

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from app.inference.engine import Graph, Images, Outputs, as_batch

Shapes = Mapping[str, tuple[int, ...]]  # of one image's outputs of the explaining graph, in their order


def inputs(graph: Graph, images: Images) -> dict[str, npt.NDArray[Any]]:
    """What the combined graph reads."""
    return {"images": as_batch(images), "explain": np.array(graph == "explain")}


def outputs(graph: Graph, combined: Outputs, shapes: Shapes) -> Outputs:
    """Outputs of `graph` from those of the combined graph, as views."""
    maps = combined.pop("maps")
    if graph == "classify":
        combined.pop("classes", None)
        return combined
    start = 0
    for name in [name for name in shapes if name not in combined]:
        end = start + prod(shapes[name])
        combined[name] = maps[:, start:end].reshape(-1, *shapes[name])
        start = end
    return combined
