"""How long a run takes at each batch size, and each of the steps around it."""

from collections.abc import Callable
from functools import partial

import numpy as np

from app.bundle import Bundle
from app.inference.cuda.engine import CudaEngine
from app.inference.cuda.recording import Recording
from app.inference.engine import GRAPH_FILES, Graph
from app.inference.model import Model
from app.inference.runner import sums_are_finite
from tests.benchmarks.record import Row, Rows
from tests.gpu.card import milliseconds
from tests.gpu.parity import open_on_gpu, pictures
from tests.gpu.place import Place, Tables

MAX_BATCH = 256
SECONDS = 0.5  # of each measurement


def measure(place: Place) -> Tables:
    tables: Tables = {"runs": [], "steps of a run, ms": [], "explaining, relative to lean": []}
    for name, bundle in place.bundles().items():
        model, engine = open_on_gpu(bundle, MAX_BATCH)
        engine.warm_up(model)
        runs, steps = speed(name, bundle, engine)
        tables["runs"] += runs
        tables["steps of a run, ms"] += steps
        tables["explaining, relative to lean"].append(relative(name, runs, model))
        del model, engine
    return tables


def speed(name: str, bundle: Bundle, engine: CudaEngine) -> tuple[Rows, Rows]:
    """The recorded run alone, the same node by node, and with all that the engine's thread does for a batch."""
    runs: Rows = []
    steps: Rows = []
    images = pictures(bundle, max(size for _, size in engine._recordings))
    for (graph, size), recording in sorted(engine._recordings.items()):
        batch = list(images[:size])
        head: Row = {"bundle": name, "graph": graph, "batch": size}
        alone = milliseconds(recording.launch, SECONDS)
        plain = milliseconds(partial(recording.launch, plainly=True), SECONDS / 2)
        whole = milliseconds(partial(engine.run, graph, batch), SECONDS)
        runs.append({
            **head,
            "recorded, ms": round(alone, 3),
            "images/s": round(1000 * size / alone),
            "node by node, ms": round(plain, 3),
            "with copies, ms": round(whole, 3),
            "images/s with copies": round(1000 * size / whole),
        })  # fmt: skip
        steps.append({**head, **of_a_run(engine, recording, batch, SECONDS / 4), "run": round(alone, 3)})
    return runs, steps


def of_a_run(engine: CudaEngine, recording: Recording, batch: list[np.ndarray], seconds: float) -> dict[str, float]:
    """What the GPU waits for between two runs, in milliseconds."""
    pixels = engine._pixels[: len(batch)]
    outputs = recording.outputs()
    assert engine._buffers
    locked = engine._buffers.borrow(recording.layout)
    parts: dict[str, Callable[[], object]] = {
        "images side by side": partial(np.stack, batch, out=pixels),
        "to the GPU": partial(recording.load, pixels),
        "from the GPU": partial(recording.outputs, locked),
        "from the GPU, not page-locked": recording.outputs,
        "all finite": partial(sums_are_finite, outputs),
    }
    return {part: round(milliseconds(run, seconds), 3) for part, run in parts.items()}


def relative(name: str, runs: Rows, model: Model) -> Row:
    best: dict[Graph, float] = {g: max(float(r["images/s"]) for r in runs if r["graph"] == g) for g in GRAPH_FILES}
    return {
        "bundle": name,
        "best lean, images/s": best["classify"],
        "best explaining, images/s": best["explain"],
        "ratio": round(best["explain"] / best["classify"], 3),
        "batches of the service, lean": model.best_batch("classify"),
        "explaining": model.best_batch("explain"),
    }
