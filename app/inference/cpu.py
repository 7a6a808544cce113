"""Runs a bundle's graphs with ONNX Runtime. Knows arrays, but no image files, requests or queues."""

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime as ort

from app.bundle import CLASSIFY_GRAPH, EXPLAIN_GRAPH
from app.inference.contract import Graph, Latency, Outputs, Pixels
from app.inference.latency import LatencyModel

FILES: dict[Graph, str] = {"classify": CLASSIFY_GRAPH, "explain": EXPLAIN_GRAPH}
WARM_UP_S = 0.1  # for each graph; batch sizes not measured by then are measured while serving
WARM_UP_RUNS = 2  # of a batch size; the first is not measured


class OnnxEngine:
    """The two graphs of a bundle as ONNX Runtime sessions, on the CPU."""

    provider = "CPUExecutionProvider"
    concurrency = 2  # the second fills the cores while the first waits for its slowest thread; docs/engine.md

    def __init__(
        self,
        *,
        folder: Path,
        image_size: tuple[int, int],
        threads: int,
        max_batch: int = 1,
    ) -> None:
        """`threads` compute one run. `max_batch` is the limit of `best_batch`."""
        self._threads = threads
        self._running = 0
        self._running_lock = threading.Lock()
        self._sessions = {graph: self._session(str(folder / file)) for graph, file in FILES.items()}
        self._latency = {graph: LatencyModel(max_batch=max_batch) for graph in FILES}
        self._pixels = np.zeros((max_batch, *image_size, 3), dtype=np.uint8)

    def best_batch(self, graph: Graph) -> int:
        return self._latency[graph].best

    def expected(self, graph: Graph, images: int) -> float:
        return self._latency[graph].expected(images)

    def forbid(self, graph: Graph, images: int) -> int:
        return self._latency[graph].forbid(images)

    def latency(self) -> list[Latency]:
        """What has been measured so far, in the warm-up and while serving."""
        measured = ((graph, size, s) for graph, model in self._latency.items() for size, s in model.seconds.items())
        return [Latency(graph, size, round(1000 * seconds, 3)) for graph, size, seconds in measured]

    def warm_up(self) -> None:
        """Run each graph with one image, then with larger batches as long as they pay and WARM_UP_S is not over."""
        for graph, model in self._latency.items():
            end = time.perf_counter() + WARM_UP_S
            self._measure(graph, 1)
            while (size := model.best) not in model.seconds and time.perf_counter() < end:
                self._measure(graph, size)

    def run(self, graph: Graph, images: Pixels | Sequence[Pixels]) -> Outputs:
        start, before = time.perf_counter(), self._count(1)
        try:
            outputs = self._forward(graph, images)
        finally:
            after = self._count(-1) + 1
        # Two runs at a time have half of the cores each.
        self._latency[graph].add(len(images), (time.perf_counter() - start) / ((before + after) / 2))
        return outputs

    def _count(self, change: int) -> int:
        """Change the number of runs under way, and return it."""
        with self._running_lock:
            self._running += change
            return self._running

    def probe(self, graph: Graph) -> Outputs:
        """It does not count as a measurement: after a pause the processor's caches are cold."""
        return self._forward(graph, [np.zeros_like(self._pixels[0])])

    def _measure(self, graph: Graph, size: int) -> None:
        for _ in range(WARM_UP_RUNS):
            self.run(graph, self._pixels[:size])

    def _forward(self, graph: Graph, images: Pixels | Sequence[Pixels]) -> Outputs:
        session = self._sessions[graph]
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(names, {"images": self._batch(images)}), strict=True))

    def _batch(self, images: Pixels | Sequence[Pixels]) -> Pixels:
        """As one array. A single image is not copied."""
        if isinstance(images, np.ndarray):
            return images
        if len(images) == 1:
            return images[0][np.newaxis]
        return np.stack(images)

    def _session(self, path: str) -> ort.InferenceSession:
        options = ort.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.inter_op_num_threads = 1
        options.enable_mem_pattern = False  # it would keep a block of memory for every batch size; docs/engine.md
        # Spinning threads would take the cores that decode the next images.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.add_session_config_entry("session.prepack.enable_parallel", "1")
        return ort.InferenceSession(path, options, providers=[self.provider])
