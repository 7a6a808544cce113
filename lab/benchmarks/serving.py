"""Images served per second beside raw runs of the model in their best arrangement: JPEG in, JSON out, 16 connections.

First every arrangement has a short loop. The best three take turns with the server, in rounds. The load generator and
the server share the cores, so the table also gives the rate with all cores to itself: cores / (CPU seconds per image).
"""

import statistics
import tempfile
from pathlib import Path

from tqdm import tqdm

from app.bundle import Precision
from app.inference.engine import Graph
from app.machine import allowed_cores
from lab.benchmarks.engines import CONNECTIONS, PRECISIONS, ROUNDS
from lab.benchmarks.random_model import random_bundle
from lab.benchmarks.raw import Arrangement, RawLoop
from lab.benchmarks.record import Row, Rows
from lab.benchmarks.rounds import quartiles, ratios
from lab.benchmarks.under_load import timed_under_load, under_load
from tests.support.pictures import classify_jpeg
from tests.support.server import PATIENT, running

BUNDLES: tuple[tuple[str, Precision], ...] = (
    ("Ti/16", "fp32"),
    *(("S/16", precision) for precision in PRECISIONS),
    ("B/16", "fp32"),
)
GRAPHS: dict[str, Graph] = {"labels": "classify", "labels and maps": "explain"}
SEARCH_SECONDS = 0.6  # of each arrangement
CANDIDATES = 3
RAW_SECONDS = 1.5
SECONDS = 6.0


def measure() -> Rows:
    rows: Rows = []
    with tempfile.TemporaryDirectory() as folder:
        for variant, precision in tqdm(BUNDLES, desc="models"):
            bundle = random_bundle(Path(folder), variant, precision)
            for what, graph in GRAPHS.items():
                rows.append({"model and answer": f"ViT-{variant}, {precision}, {what}", **row(bundle, graph)})
    return rows


def row(bundle: Path, graph: Graph) -> Row:
    request = classify_jpeg(f"?attention={'now' if graph == 'explain' else 'false'}")
    raw = RawLoop(bundle, graph)
    rates: dict[Arrangement, list[float]] = {one: [] for one in raw.best(CANDIDATES, SEARCH_SECONDS)}
    served, waits = [], []
    with running(bundle, **PATIENT) as server:
        under_load(server, request, SECONDS / 4, connections=CONNECTIONS)
        for _ in range(ROUNDS):
            for one, found in rates.items():
                found.append(raw.rate(one, RAW_SECONDS))
            figures, milliseconds = timed_under_load(server, request, SECONDS, connections=CONNECTIONS)
            served.append(figures)
            waits += milliseconds["200"]
    of_served = [each["images_per_s"] for each in served]
    best, of_best = max(rates.items(), key=lambda item: statistics.median(item[1]))
    busy = statistics.median(each["cpu_s"] / each["images"] for each in served)
    return {
        "best raw arrangement": str(best),
        "raw, images/s": quartiles(of_best, 1),
        "served, images/s": quartiles(of_served, 1),
        "served / best raw": quartiles(ratios(of_served, of_best), 2),
        "p50, ms": round(statistics.median(waits)),
        "CPU ms per image, server": round(1000 * busy, 1),
        "ratio by its CPU": round(allowed_cores() / busy / statistics.median(of_best), 2),
    }
