"""Runs a bundle's graphs with ONNX Runtime. Knows arrays, but no image files, requests or queues."""

import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import onnxruntime as ort

from app.bundle import CLASSIFY_GRAPH, EXPLAIN_GRAPH, WEIGHTS, KnownAnswer
from app.inference.contract import Gear, Graph, Latency, Outputs, Pixels, Plan
from app.inference.gears import Gears
from app.inference.known_answer import KnownImage
from app.inference.latency import LatencyModel
from app.inference.memory import MemoryModel, warn_of_weights
from app.machine import resident_memory

FILES: dict[Graph, str] = {"classify": CLASSIFY_GRAPH, "explain": EXPLAIN_GRAPH}
WARM_UP_S = 0.1  # for each graph in each gear; batch sizes not measured by then are measured while serving
MIN_EXTERNAL_BYTES = 1024  # of a weight that is mapped; smaller ones stay in the graph
RUNTIME = f"onnxruntime {ort.__version__}"
WARM_UP_RUNS = 2  # of a batch size; the first also allocates memory


class OnnxEngine:
    """The two graphs of a bundle as ONNX Runtime sessions, on the CPU."""

    provider = "CPUExecutionProvider"

    def __init__(
        self,
        *,
        folder: Path,
        image_size: tuple[int, int],
        gears: Gears,
        packed: bool = False,
        max_batch: int = 1,
        known_answer: KnownAnswer | None = None,
        max_memory: float = math.inf,
    ) -> None:
        """`packed` says that app/inference/packed.py made `folder`. `max_batch` is the limit of `best_batch`,
        `max_memory` that of this process in bytes. Without a `known_answer` the engine can run, but neither warm up nor
        test itself: export writes one.
        """
        self._gears = gears
        self._packed = packed
        self._running = 0
        self._running_lock = threading.Lock()
        self._max_memory = max_memory
        if not packed:  # then each session has a copy of its own
            warn_of_weights(len(gears.runs) * len(FILES) * (folder / WEIGHTS).stat().st_size, max_memory)
        keys = [(graph, gear) for gear in gears.runs for graph in FILES]
        with ThreadPoolExecutor(gears.threads["wide"]) as makers:  # a session packs its weights in one thread
            sessions = makers.map(lambda key: self._session(folder / FILES[key[0]], gears.threads[key[1]]), keys)
            self._sessions = dict(zip(keys, sessions, strict=True))
        self._latency = {key: LatencyModel(max_batch=max_batch) for key in keys}
        self.max_batch = max_batch
        self._known = KnownImage(known_answer, image_size) if known_answer else None
        self._alone: dict[Graph, Gear] = dict.fromkeys(FILES, "wide")  # the gear that answers a lone image sooner
        self._asked: set[tuple[Graph, Gear, int]] = set()

    @property
    def concurrency(self) -> int:
        return self._gears.concurrency

    def plan(self, graph: Graph, *, waiting: int, running: Sequence[Plan]) -> Plan | None:
        return self._gears.plan(
            waiting=waiting,
            running=running,
            best=lambda gear: self._latency[graph, gear].best,
            alone=self._alone[graph],
        )

    def best_batch(self, graph: Graph) -> int:
        return max(self._latency[graph, gear].best for gear in self._gears.runs)

    def expected(self, graph: Graph, images: int, gear: Gear = "wide") -> float:
        return self._latency[graph, gear].expected(images)

    def forbid(self, graph: Graph, images: int) -> int:
        return min(self._latency[graph, gear].forbid(images) for gear in self._gears.runs)

    def latency(self) -> list[Latency]:
        """What has been measured so far, in the warm-up and while serving."""
        measured = ((*key, size, s) for key, model in self._latency.items() for size, s in model.seconds.items())
        return [Latency(graph, gear, size, round(1000 * seconds, 3)) for graph, gear, size, seconds in measured]

    def warm_up(self) -> None:
        """Run each graph with one image on all cores. Then run it in each gear with one image and with larger batches,
        as long as they pay, WARM_UP_S is not over and they fit into the memory. Every run asks the known answer.

        Raises WrongAnswer.
        """
        memory = MemoryModel(allowed=self._max_memory, before=resident_memory(), concurrency=self.concurrency)
        for graph in FILES:
            self._measure(graph, "wide", 1, memory, runs=1)
        self._fit(memory)
        for (graph, gear), model in self._latency.items():
            of_a_core = self.expected(graph, 1) * self._gears.threads["wide"] / self._gears.threads[gear]
            end = time.perf_counter() + WARM_UP_S - WARM_UP_RUNS * of_a_core
            while not model.settled and time.perf_counter() < end:
                self._measure(graph, gear, model.best, memory, runs=WARM_UP_RUNS)
                self._fit(memory)
        for graph in FILES:
            seconds = {gear: self.expected(graph, 1, gear) for gear in self._gears.runs}
            if all(seconds.values()):  # each was measured, and by itself
                self._alone[graph] = min(seconds, key=seconds.__getitem__)
        memory.report(largest=self._latency["explain", "wide"].sizes[-1], wanted=self.max_batch)

    def run(self, graph: Graph, images: Pixels | Sequence[Pixels], gear: Gear = "wide") -> Outputs:
        start, before = time.perf_counter(), self._count(1)
        try:
            outputs = self._forward(graph, gear, images)
        finally:
            after = self._count(-1) + 1
        seconds = time.perf_counter() - start
        if gear == "wide":
            seconds /= (before + after) / 2  # two runs at a time have half of the cores each
        self._latency[graph, gear].add(len(images), seconds)
        return outputs

    def _count(self, change: int) -> int:
        """Change the number of runs under way, and return it."""
        with self._running_lock:
            self._running += change
            return self._running

    def ask_once(self, graph: Graph, images: int, gear: Gear = "wide") -> None:
        size = self._latency[graph, gear].size(images)
        if (graph, gear, size) not in self._asked:
            self._ask(graph, gear, size)

    def probe(self, graph: Graph) -> None:
        """It does not count as a measurement: after a pause the processor's caches are cold."""
        assert self._known
        for gear in self._gears.runs:
            self._known.check(graph, self._forward(graph, gear, self._known.images(1)), provider=self.provider)

    def deviation(self) -> dict[Graph, float]:
        assert self._known
        return dict(self._known.largest)

    def _ask(self, graph: Graph, gear: Gear, size: int) -> None:
        assert self._known
        self._known.check(graph, self.run(graph, self._known.images(size), gear), provider=self.provider)
        self._asked.add((graph, gear, size))

    def _measure(self, graph: Graph, gear: Gear, size: int, memory: MemoryModel, *, runs: int) -> None:
        before = resident_memory()
        for _ in range(runs):
            self._ask(graph, gear, size)
        memory.add(graph, size, resident_memory() - before)

    def _fit(self, memory: MemoryModel) -> None:
        """Forbid batches that do not fit into the memory. A single image is always allowed."""
        sizes = self._latency["explain", "wide"].sizes
        if too_large := next((size for size in sizes if size > 1 and not memory.fits(size)), None):
            for graph in FILES:
                self.forbid(graph, too_large)

    def _forward(self, graph: Graph, gear: Gear, images: Pixels | Sequence[Pixels]) -> Outputs:
        session = self._sessions[graph, gear]
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(names, {"images": self._batch(images)}), strict=True))

    def _batch(self, images: Pixels | Sequence[Pixels]) -> Pixels:
        """As one array. A single image is not copied."""
        if isinstance(images, np.ndarray):
            return images
        if len(images) == 1:
            return images[0][np.newaxis]
        return np.stack(images)

    def _session(self, file: Path, threads: int) -> ort.InferenceSession:
        return open_session(file, threads, packed=self._packed)


def open_session(file: Path, threads: int, *, packed: bool) -> ort.InferenceSession:
    use_one_arena()
    options = session_options(threads)
    options.add_session_config_entry("session.use_env_allocators", "1")
    if packed:  # it is optimised already
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(str(file), options, providers=[OnnxEngine.provider])


def session_options(threads: int) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = False  # it would keep a block of memory for every batch size; docs/engine.md
    # Spinning threads would take the cores that decode the next images.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


@cache
def use_one_arena() -> None:
    """Let all sessions of this process that ask for it have one memory for what lies between their layers."""
    memory = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
    ort.create_and_register_allocator(memory, ort.OrtArenaCfg({"max_mem": 0, "arena_extend_strategy": 0}))


def open_run(folder: Path, image_size: tuple[int, int], threads: int, *, packed: bool) -> Callable[[], object]:
    """A run of the lean graph with one blank image, in a session of its own."""
    session = open_session(folder / CLASSIFY_GRAPH, threads, packed=packed)
    images = np.zeros((1, *image_size, 3), dtype=np.uint8)
    return lambda: session.run(None, {"images": images})


def pack(graph: Path, packed_graph: Path) -> None:
    """Write the graph as ONNX Runtime has optimised it, and beside it its weights, plain and prepacked."""
    options = session_options(threads=1)
    options.log_severity_level = 3  # it warns that the graph is for this kind of processor alone
    options.optimized_model_filepath = str(packed_graph)
    options.add_session_config_entry(
        "session.optimized_model_external_initializers_file_name", packed_graph.with_suffix(".bin").name
    )
    options.add_session_config_entry(
        "session.optimized_model_external_initializers_min_size_in_bytes", str(MIN_EXTERNAL_BYTES)
    )
    options.add_session_config_entry("session.save_external_prepacked_constant_initializers", "1")
    ort.InferenceSession(str(graph), options, providers=[OnnxEngine.provider])
