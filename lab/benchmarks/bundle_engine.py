"""A bundle's engine for any number of images. Where the service has streams, it opens one for single images."""

from pathlib import Path

from app.bundle import COMBINED_GRAPH, load_bundle
from app.inference.engine import Engine
from app.machine import allowed_cores


def open_engine(bundle: Path, engine: str = "openvino") -> Engine:
    """`engine` is onnxruntime or openvino. It has all cores."""
    if engine == "openvino":  # importing the other one too would take memory, which is measured
        from app.inference.openvino import OpenVinoEngine as Kind
    else:
        from app.inference.onnxruntime import OnnxEngine as Kind  # type: ignore[assignment]  # of the same arguments
    manifest = load_bundle(bundle).manifest
    return Kind(
        graph=bundle / COMBINED_GRAPH,
        shapes=manifest.explains,
        precision=manifest.precision,
        threads=allowed_cores(),
    )
