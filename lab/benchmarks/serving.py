"""Images served per second by models of several sizes: JPEG in, JSON out, 16 connections, labels with and without maps.

The load generator and the server share the cores.
"""

import statistics
import tempfile
from pathlib import Path

from tqdm import tqdm

from app.bundle import Precision
from lab.benchmarks.engines import PRECISIONS
from lab.benchmarks.random_model import random_bundle
from lab.benchmarks.record import Row, Rows
from lab.benchmarks.rounds import quartiles
from lab.benchmarks.under_load import timed_under_load, under_load
from tests.support.pictures import classify_jpeg
from tests.support.server import PATIENT, running

BUNDLES: tuple[tuple[str, Precision], ...] = (
    ("Ti/16", "fp32"),
    *(("S/16", precision) for precision in PRECISIONS),
    ("B/16", "fp32"),
)
QUERIES = {"labels": "?attention=false", "labels and maps": "?attention=now"}
CONNECTIONS = 16
ROUNDS = 5
SECONDS = 6.0


def measure() -> Rows:
    with tempfile.TemporaryDirectory() as folder:
        return [
            {"model and answer": f"ViT-{variant}, {precision}, {what}", **row(bundle, query)}
            for variant, precision in tqdm(BUNDLES, desc="models")
            for bundle in [random_bundle(Path(folder), variant, precision)]
            for what, query in QUERIES.items()
        ]


def row(bundle: Path, query: str) -> Row:
    request, waits = classify_jpeg(query), []
    with running(bundle, **PATIENT) as server:
        under_load(server, request, SECONDS / 4, connections=CONNECTIONS)
        runs = []
        for _ in range(ROUNDS):
            figures, milliseconds = timed_under_load(server, request, SECONDS, connections=CONNECTIONS)
            runs.append(figures)
            waits += milliseconds["200"]
    return {
        "served, images/s": quartiles([each["images_per_s"] for each in runs], 1),
        "p50, ms": round(statistics.median(waits)),
        "CPU ms per image, server": round(1000 * statistics.median(each["cpu_s"] / each["images"] for each in runs), 1),
    }
