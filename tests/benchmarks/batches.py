"""`python -m tests.benchmarks.batches GRAPH classify|explain SIDE`: time of each batch size, and peak memory so far.

GRAPH is the combined one of an fp32 bundle. It prints JSON. Imports no torch, so that its memory is not measured.
"""

import json
import statistics
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

from app.inference.engine import Graph
from app.inference.openvino import OpenVinoEngine
from app.machine import allowed_cores
from tests.benchmarks.peak import peak_mib

BATCHES = (1, 2, 4, 8, 16)
SECONDS = 1.0  # for each; at least three runs


def measured(path: Path, graph: Graph, side: int) -> list[dict[str, float]]:
    engine = OpenVinoEngine(graph=path, shapes={}, precision="fp32", threads=allowed_cores())
    images = np.random.default_rng(0).integers(0, 256, (max(BATCHES), side, side, 3), dtype=np.uint8)
    runs = []
    for batch in BATCHES:
        run = partial(engine.run, graph, images[:batch])
        run()
        times: list[float] = []
        while len(times) < 3 or sum(times) < SECONDS:
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
        runs.append({"batch": batch, "ms": 1000 * statistics.median(times), "peak_mib": peak_mib("self")})
    return runs


if __name__ == "__main__":
    file, of_graph, side = sys.argv[1:]
    print(json.dumps(measured(Path(file), "explain" if of_graph == "explain" else "classify", int(side))))
