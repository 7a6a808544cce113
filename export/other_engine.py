"""The engine of a CPU that parity was not checked with: whether it runs the written bundle too."""

from collections.abc import Callable
from pathlib import Path
from textwrap import shorten
from typing import NamedTuple

from app.bundle import COMBINED_GRAPH, Manifest, Precision
from app.inference.engine import DeviceError, Engine, failures_as_device_errors
from app.inference.known_answer import KnownImage
from app.inference.onnxruntime import OnnxEngine
from app.inference.openvino import OpenVinoEngine
from app.machine import allowed_cores
from model.progress import working

IMAGES = 2  # one more than a fixed number would show
LONGEST = 500  # characters of what is wrong; OpenVINO may write thousands


class Other(NamedTuple):
    kind: Callable[..., Engine]
    name: str
    without: str  # what follows for the service


OPENVINO = Other(
    OpenVinoEngine,
    "OpenVINO",
    "So the service takes ONNX Runtime on a CPU, which is slower, and VIT_ENGINE=openvino does not start.",
)
ONNX_RUNTIME = Other(
    OnnxEngine,
    "ONNX Runtime",
    "So the service needs OpenVINO on a CPU, and VIT_ENGINE=onnxruntime does not start.",
)
OTHERS: dict[Precision, Other] = {"fp32": OPENVINO, "int8": OPENVINO, "bf16": ONNX_RUNTIME}


def other_engine(folder: Path, manifest: Manifest) -> str | None:
    """What is wrong with it, and what that means for the service; None if both graphs give the known answer.

    None in fp16 too, which is for CUDA.
    """
    if manifest.precision not in OTHERS:
        return None
    kind, name, without = OTHERS[manifest.precision]
    known = KnownImage(manifest.known_answer, manifest.image.size)
    try:
        with working(f"asking {name}"), failures_as_device_errors(f"{name} cannot run this bundle"):
            engine = kind(
                graph=folder / COMBINED_GRAPH,
                layout=manifest.graphs,
                precision=manifest.precision,
                threads=allowed_cores(),
            )
            for graph in manifest.graphs:
                known.check(graph, engine.run(graph, *known.inputs(IMAGES)), provider=name)
    except DeviceError as error:
        return f"{shorten(str(error), LONGEST, placeholder=' ...')}. {without}"
    return None
