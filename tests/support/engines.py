"""Engines and models on the bundle of a folder, and an engine that is watched or altered."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from app.bundle import COMBINED_GRAPH, Precision, load_bundle
from app.inference.engine import Asked, Check, Engine, Graph, Images, Outputs
from app.inference.known_answer import KnownImage
from app.inference.model import Model
from app.inference.onnxruntime import OnnxEngine
from app.inference.openvino import OpenVinoEngine


class SideBySide(Engine):
    """As an engine: the images of a batch are run one after the other, each as beside others."""

    def __init__(self, kind: Callable[..., Engine], **how: Any) -> None:
        self.provider = kind.provider  # type: ignore[attr-defined]
        self._one_image = kind(threads=2, side_by_side=2, **how)
        self.layout = self._one_image.layout

    def warm_up(self, check: Check) -> None:
        for graph in self.layout:
            check(graph)

    def run(self, graph: Graph, images: Images, asked: Sequence[Asked] = (), *, beside: bool = False) -> Outputs:
        runs = [self._one_image.run(graph, [image], asked[at : at + 1], beside=True) for at, image in enumerate(images)]
        return {name: np.concatenate([run[name] for run in runs]) for name in runs[0]}


ENGINES = {"openvino": OpenVinoEngine, "onnxruntime": OnnxEngine}  # on CPUs, by the name in the settings
ARRANGEMENTS: dict[str, Callable[..., Engine]] = {
    "openvino": partial(OpenVinoEngine, threads=2),
    "openvino side by side": partial(SideBySide, OpenVinoEngine),
    "onnxruntime": partial(OnnxEngine, threads=1),
    "onnxruntime side by side": partial(SideBySide, OnnxEngine),
}


def engine_of(folder: Path, kind: str = "onnxruntime", precision: Precision | None = None, **how: Any) -> Engine:
    """`precision` is that of the manifest unless it is given."""
    manifest = load_bundle(folder).manifest
    return ARRANGEMENTS[kind](
        graph=folder / COMBINED_GRAPH, layout=manifest.graphs, precision=precision or manifest.precision, **how
    )


def model_of(folder: Path, engine: Engine | None = None) -> Model:
    manifest = load_bundle(folder).manifest
    return Model(engine=engine or engine_of(folder), known=KnownImage(manifest.known_answer, manifest.image.size))


class Watched:
    """An engine that remembers its runs. `before` each run it calls a function, which may raise, and `after` it another
    with the graph, the outputs, which it may change, and whether it was beside others.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        before: Callable[[Graph, Images], object] = lambda graph, images: None,
        after: Callable[[Graph, Outputs, bool], object] = lambda graph, outputs, beside: None,
    ) -> None:
        self._engine = engine
        self.before, self.after = before, after
        self.runs: list[tuple[Graph, int]] = []

    def __getattr__(self, name: str):
        return getattr(self._engine, name)

    def run(self, graph: Graph, images: Images, asked: Sequence[Asked] = (), *, beside: bool = False) -> Outputs:
        self.runs.append((graph, len(images)))
        self.before(graph, images)
        outputs = self._engine.run(graph, images, asked, beside=beside)
        outputs = {name: rows.copy() for name, rows in outputs.items()}
        self.after(graph, outputs, beside)
        return outputs
