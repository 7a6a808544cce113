"""`python -m lab.benchmarks.raw BUNDLE classify|explain`: the time of each batch size and the peak memory so far.

The model alone, on all cores; prints JSON. Imports no torch, so that its memory is not measured.
"""

import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np

from app.bundle import load_bundle
from app.inference.engine import Graph
from lab.benchmarks.bundle_engine import open_engine
from tests.support.peak import peak_mib

BATCHES = (1, 2, 4, 8, 16)
SECONDS = 1.0  # for each; at least three runs


def times_and_peaks(folder: Path, graph: Graph) -> list[dict[str, float]]:
    pixels = (max(BATCHES), *load_bundle(folder).manifest.image.size, 3)
    images = np.random.default_rng(0).integers(0, 256, pixels, dtype=np.uint8)
    engine = open_engine(folder)
    found = []
    for batch in BATCHES:
        engine.run(graph, images[:batch])
        times: list[float] = []
        while len(times) < 3 or sum(times) < SECONDS:
            start = time.perf_counter()
            engine.run(graph, images[:batch])
            times.append(time.perf_counter() - start)
        found.append({"batch": batch, "ms": 1000 * statistics.median(times), "peak_mib": peak_mib("self")})
    return found


if __name__ == "__main__":
    bundle, of_graph = sys.argv[1:]
    print(json.dumps(times_and_peaks(Path(bundle), "explain" if of_graph == "explain" else "classify")))
