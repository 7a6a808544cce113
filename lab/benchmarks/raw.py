"""Raw loops of a model: runs and nothing else, in every arrangement of runs, threads and batches.

`python -m lab.benchmarks.raw BUNDLE classify|explain` prints the time of each batch size and the peak memory so far,
as JSON. Imports no torch, so that its memory is not measured.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from app.bundle import Graph, load_bundle
from app.machine import allowed_cores
from lab.benchmarks.bundle_engine import open_engine
from lab.benchmarks.servers.vit import opened
from tests.support.peak import peak_mib

BATCHES = (1, 2, 3, 4, 6, 8)
LEAST_RUNS = 2  # of each thread, however long they take
MEMORY_BATCHES = (1, 2, 4, 8, 16)
MEMORY_SECONDS = 1.0  # for each; at least three runs

Run = Callable[[int], object]  # of a batch of this size
Open = Callable[[int, int], Run]  # of as many runs at a time, and threads of each


class Arrangement(NamedTuple):
    runs: int  # at a time
    threads: int  # of each run
    batch: int

    def __str__(self) -> str:
        return f"{self.runs} × {self.threads}, batch {self.batch}"


def arrangements(cores: int) -> list[Arrangement]:
    """One run on all cores; two such runs at a time; and a run of one thread on each core."""
    ways = dict.fromkeys([(1, cores), (2, cores), (cores, 1)])
    return [Arrangement(*way, batch) for way in ways for batch in BATCHES]


class RawLoop:
    """Opens the model once for each run that goes on at a time."""

    def __init__(self, opened: Open) -> None:
        self._open = opened
        self._runs: dict[tuple[int, int], list[Run]] = {}

    def rate(self, arrangement: Arrangement, seconds: float) -> float:
        """Images/s: the sum over the runs that go on at a time."""
        count, threads, batch = arrangement
        runs = self._runs.setdefault((count, threads), [])
        while len(runs) < count:
            runs.append(self._open(count, threads))
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
        rates = {one: self.rate(one, seconds) for one in arrangements(allowed_cores())}
        return sorted(rates, key=lambda one: -rates[one])[:count]


def of_bundle(folder: Path, graph: Graph) -> Open:
    """As the service runs it."""
    manifest = load_bundle(folder).manifest
    pixels = (max(MEMORY_BATCHES), *manifest.image.size, 3)
    images = np.random.default_rng(0).integers(0, 256, pixels, dtype=np.uint8)

    def open_(runs: int, threads: int) -> Run:
        engine = open_engine(folder, threads=threads)
        return lambda batch: engine.run(graph, images[:batch])

    return open_


def of_onnx_runtime(graph: Path) -> Open:
    """`session.run`. Threads wait for work in a loop, which is the default, where one run has all cores."""

    def open_(runs: int, threads: int) -> Run:
        session = opened(graph, threads, spinning=runs == 1)
        (source,) = session.get_inputs()
        images = np.random.default_rng(0).integers(0, 256, (max(BATCHES), *source.shape[1:])).astype(np.float32)
        return lambda batch: session.run(None, {source.name: images[:batch]})

    return open_


def times_and_peaks(folder: Path, graph: Graph) -> list[dict[str, float]]:
    run = of_bundle(folder, graph)(1, allowed_cores())
    found = []
    for batch in MEMORY_BATCHES:
        run(batch)
        times: list[float] = []
        while len(times) < 3 or sum(times) < MEMORY_SECONDS:
            start = time.perf_counter()
            run(batch)
            times.append(time.perf_counter() - start)
        found.append({"batch": batch, "ms": 1000 * statistics.median(times), "peak_mib": peak_mib("self")})
    return found


if __name__ == "__main__":
    bundle, of_graph = sys.argv[1:]
    print(json.dumps(times_and_peaks(Path(bundle), "explain" if of_graph == "explain" else "classify")))
