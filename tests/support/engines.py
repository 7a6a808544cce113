"""Engines and models on the bundle of a folder, and an engine that is watched or altered."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from app.bundle import COMBINED_GRAPH, Precision, load_bundle
from app.inference.engine import GRAPH_FILES, Engine, Graph, Images, Outputs
from app.inference.known_answer import KnownImage
from app.inference.model import Model
from app.inference.onnxruntime import OnnxEngine
from app.inference.openvino import OpenVinoEngine, OpenVinoStreams


class Streamed:
    """Streams of both graphs as an engine: the images of a batch are run one by one."""

    pads = OpenVinoEngine.pads
    provider = OpenVinoEngine.provider

    def __init__(self, *, graph: Path, precision: Precision, **of_combined: object) -> None:
        image_size = load_bundle(graph.parent).manifest.image.size
        how = {"image_size": image_size, "precision": precision, "threads": 2, "streams": 2}
        self._streams = {
            each: OpenVinoStreams(graph=graph.with_name(file), **how) for each, file in GRAPH_FILES.items()
        }

    def run(self, graph: Graph, images: Images) -> Outputs:
        rows = [self._streams[graph].run([image]) for image in images]
        return {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}

    def forget(self, graph: Graph, largest: int) -> None:
        pass


ENGINES = {"openvino": OpenVinoEngine, "onnxruntime": OnnxEngine}  # on CPUs, by the name in the settings
ARRANGEMENTS: dict[str, Callable[..., Engine]] = {
    "openvino": partial(OpenVinoEngine, threads=1),
    "openvino with streams": Streamed,
    "onnxruntime": partial(OnnxEngine, threads=1),
}


def engine_of(folder: Path, kind: str = "onnxruntime", precision: Precision | None = None) -> Engine:
    """`precision` is that of the manifest unless it is given."""
    manifest = load_bundle(folder).manifest
    return ARRANGEMENTS[kind](
        graph=folder / COMBINED_GRAPH,
        shapes=manifest.explains,
        precision=precision or manifest.precision,
    )


def model_of(folder: Path, engine: Engine | None = None, *, max_batch: int = 4, **streams: Any) -> Model:
    manifest = load_bundle(folder).manifest
    return Model(
        engine=engine or engine_of(folder),
        known=KnownImage(manifest.known_answer, manifest.image.size),
        max_batch=max_batch,
        **streams,
    )


class Watched:
    """An engine that remembers its runs. `before` each run it calls a function, which may raise, and `after` it another
    with the outputs, which it may change.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        before: Callable[[Graph, Images], object] = lambda graph, images: None,
        after: Callable[[Graph, Outputs], object] = lambda graph, outputs: None,
    ) -> None:
        self._engine = engine
        self.before, self.after = before, after
        self.runs: list[tuple[Graph, int]] = []

    def __getattr__(self, name: str):
        return getattr(self._engine, name)

    def run(self, graph: Graph, images: Images) -> Outputs:
        self.runs.append((graph, len(images)))
        self.before(graph, images)
        outputs = {name: rows.copy() for name, rows in self._engine.run(graph, images).items()}
        self.after(graph, outputs)
        return outputs
