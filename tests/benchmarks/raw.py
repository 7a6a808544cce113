"""Raw loops of a model: runs and nothing else, in every arrangement of runs, threads and batches."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from app.bundle import COMBINED_GRAPH, Bundle
from app.inference.engine import Graph
from app.inference.openvino import OpenVinoEngine
from app.machine import allowed_cores
from tests.benchmarks.servers.vit import opened as session_of

BATCHES = (1, 2, 3, 4, 6, 8)
LEAST_RUNS = 2  # of each thread, however long they take

Run = Callable[[int], object]  # of a batch of this size
Open = Callable[[int, bool], Run]  # threads of each run, and whether they wait for work in a loop


class Arrangement(NamedTuple):
    runs: int  # at a time
    threads: int  # of each run
    spinning: bool  # whether they wait for work in a loop
    batch: int

    def __str__(self) -> str:
        spinning = ", spinning" if self.spinning else ""
        return f"{self.runs} × {self.threads}, batch {self.batch}{spinning}"


def arrangements(cores: int, *, spinning: bool) -> list[Arrangement]:
    """One run on all cores; two such runs at a time; and a run of one thread on each core. With `spinning`, one run on
    all cores that spin too.
    """
    ways = [*([(1, cores, True)] if spinning else []), (1, cores, False), (2, cores, False), (cores, 1, False)]
    return [Arrangement(*way, batch) for way in dict.fromkeys(ways) for batch in BATCHES]


class RawLoop:
    """Opens the model once for each run that goes on at a time."""

    def __init__(self, opened: Open, *, spinning: bool) -> None:
        """`spinning`: whether this runtime has threads that can spin."""
        self._open = opened
        self._arrangements = arrangements(allowed_cores(), spinning=spinning)
        self._runs: dict[tuple[int, int, bool], list[Run]] = {}

    def rate(self, arrangement: Arrangement, seconds: float) -> float:
        """Images/s: the sum over the runs that go on at a time."""
        count, threads, spinning, batch = arrangement
        runs = self._runs.setdefault(arrangement[:-1], [])
        while len(runs) < count:
            runs.append(self._open(threads, spinning))
        for run in runs:
            run(batch)

        def loop(run: Run) -> float:
            start, done = time.perf_counter(), 0
            while done < LEAST_RUNS or time.perf_counter() < start + seconds:
                run(batch)
                done += 1
            return done * batch / (time.perf_counter() - start)

        with ThreadPoolExecutor(count) as pool:
            return sum(pool.map(loop, runs))

    def best(self, count: int, seconds: float) -> list[Arrangement]:
        """Those with the highest rate in a loop of so many seconds each, the best first."""
        rates = {one: self.rate(one, seconds) for one in self._arrangements}
        return sorted(rates, key=lambda one: -rates[one])[:count]


def of_bundle(bundle: Bundle, graph: Graph) -> RawLoop:
    """As the service runs it."""
    manifest = bundle.manifest

    def opened(threads: int, spinning: bool) -> Run:
        path, precision = bundle.folder / COMBINED_GRAPH, manifest.precision
        engine = OpenVinoEngine(graph=path, shapes=manifest.explains, precision=precision, threads=threads)
        images = np.random.default_rng(0).integers(0, 256, (max(BATCHES), *manifest.image.size, 3), dtype=np.uint8)
        return lambda batch: engine.run(graph, images[:batch])

    return RawLoop(opened, spinning=False)


def of_onnx_runtime(graph: Path) -> RawLoop:
    """`session.run`."""

    def opened(threads: int, spinning: bool) -> Run:
        session = session_of(graph, threads, spinning=spinning)
        (source,) = session.get_inputs()
        images = np.random.default_rng(0).integers(0, 256, (max(BATCHES), *source.shape[1:])).astype(np.float32)
        return lambda batch: session.run(None, {source.name: images[:batch]})

    return RawLoop(opened, spinning=True)
