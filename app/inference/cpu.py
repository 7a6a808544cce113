"""Runs a bundle's graphs with ONNX Runtime. Knows arrays, but no image files, requests or queues."""

import logging
import math
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime as ort

from app.bundle import CLASSIFY_GRAPH, EXPLAIN_GRAPH, WEIGHTS, KnownAnswer
from app.inference.contract import Graph, Latency, Outputs, Pixels
from app.inference.known_answer import KnownImage
from app.inference.latency import LatencyModel
from app.inference.memory import MemoryModel
from app.machine import resident_memory

log = logging.getLogger(__name__)

FILES: dict[Graph, str] = {"classify": CLASSIFY_GRAPH, "explain": EXPLAIN_GRAPH}
WARM_UP_S = 0.1  # for each graph; batch sizes not measured by then are measured while serving
WARM_UP_RUNS = 2  # of a batch size; the first is not measured
MIB = 2**20


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
        known_answer: KnownAnswer | None = None,
        max_memory: float = math.inf,
    ) -> None:
        """`threads` compute one run. `max_batch` is the limit of `best_batch`, `max_memory` that of this process in
        bytes. Without a `known_answer` the engine can run, but neither warm up nor test itself: export writes one.
        """
        self._threads = threads
        self._running = 0
        self._running_lock = threading.Lock()
        self._max_memory = max_memory
        self._warn_of_weights((folder / WEIGHTS).stat().st_size)
        with ThreadPoolExecutor(self.concurrency) as threads_of_start:  # a session packs its weights in one thread
            sessions = threads_of_start.map(self._session, (str(folder / file) for file in FILES.values()))
            self._sessions = dict(zip(FILES, sessions, strict=True))
        self._latency = {graph: LatencyModel(max_batch=max_batch) for graph in FILES}
        self._max_batch = max_batch
        self._known = KnownImage(known_answer, image_size) if known_answer else None
        self._asked: set[tuple[Graph, int]] = set()

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
        """Run each graph with one image, then with larger batches as long as they pay, WARM_UP_S is not over and they
        fit into the memory. Every run asks the known answer.

        Raises WrongAnswer.
        """
        memory = MemoryModel(allowed=self._max_memory, before=resident_memory(), concurrency=self.concurrency)
        for graph in self._latency:
            self._measure(graph, 1, memory)
        self._fit(memory)
        for graph, model in self._latency.items():
            end = time.perf_counter() + WARM_UP_S - WARM_UP_RUNS * model.expected(1)
            while (size := model.best) not in model.seconds and time.perf_counter() < end:
                self._measure(graph, size, memory)
                self._fit(memory)
        self._report(memory)

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

    def ask_once(self, graph: Graph, images: int) -> None:
        size = self._latency[graph].size(images)
        if (graph, size) not in self._asked:
            self._ask(graph, size)

    def probe(self, graph: Graph) -> None:
        """It does not count as a measurement: after a pause the processor's caches are cold."""
        assert self._known
        self._known.check(graph, self._forward(graph, self._known.images(1)), provider=self.provider)

    def deviation(self) -> dict[Graph, float]:
        assert self._known
        return dict(self._known.largest)

    def _ask(self, graph: Graph, size: int) -> None:
        assert self._known
        self._known.check(graph, self.run(graph, self._known.images(size)), provider=self.provider)
        self._asked.add((graph, size))

    def _measure(self, graph: Graph, size: int, memory: MemoryModel) -> None:
        before = resident_memory()
        for _ in range(WARM_UP_RUNS):
            self._ask(graph, size)
        memory.add(graph, size, resident_memory() - before)

    def _fit(self, memory: MemoryModel) -> None:
        """Forbid batches that do not fit into the memory. A single image is always allowed."""
        for graph, model in self._latency.items():
            if too_large := next((size for size in model.sizes if size > 1 and not memory.fits(size)), None):
                self.forbid(graph, too_large)

    def _warn_of_weights(self, size: int) -> None:
        """Before the sessions are made: while they are, the kernel may end this process without a word."""
        needed = len(FILES) * size  # each session has a copy of its own
        if needed > self._max_memory:
            log.warning(
                "memory: the weights alone take %d MiB, and %d MiB are left for the model. The kernel may end this "
                "process. Raise the memory limit, export the model in int8, or lower VIT_STORE_MAX_BYTES.",
                needed / MIB,
                self._max_memory / MIB,
            )

    def _report(self, memory: MemoryModel) -> None:
        if math.isinf(self._max_memory):
            return
        largest, allowed = self._latency["explain"].sizes[-1], self._max_memory / MIB
        if not memory.fits(1):
            log.warning(
                "memory: the model needs about %d MiB for single images, and %d MiB are left for it. The kernel may "
                "end this process. Raise the memory limit or lower VIT_STORE_MAX_BYTES.",
                memory.needed(1) / MIB,
                allowed,
            )
        elif largest < self._max_batch:
            log.warning(
                "memory: batches have at most %d images, because the model would need about %d MiB for %d, and %d MiB "
                "are left for it",
                largest,
                memory.needed(self._max_batch) / MIB,
                self._max_batch,
                allowed,
            )
        else:
            needed = memory.needed(largest) / MIB
            log.info(
                "memory: the model needs about %d MiB for batches of %d, and %d MiB are left for it",
                needed,
                largest,
                allowed,
            )

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
        return ort.InferenceSession(path, options, providers=[self.provider])
