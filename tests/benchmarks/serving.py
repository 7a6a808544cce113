"""Images served per second against raw `session.run` at its best batch: JPEG in, JSON out, 16 connections.

The load generator and the server share the cores, and decoding uses them too. So the table also gives the rate that the
server would reach with all cores to itself: cores / (CPU seconds per image).
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from app.bundle import CLASSIFY_GRAPH, EXPLAIN_GRAPH, Precision
from app.machine import allowed_cores
from export.bundle import write_bundle
from tests.benchmarks.graph import runner, session
from tests.benchmarks.load import post
from tests.benchmarks.pictures import jpeg
from tests.benchmarks.random_model import random_checkpoint
from tests.benchmarks.server import PATIENT, running

BUNDLES: tuple[tuple[str, Precision], ...] = (("Ti/16", "fp32"), ("S/16", "fp32"), ("S/16", "int8"), ("B/16", "fp32"))
BATCHES = (1, 2, 4, 8)
CONNECTIONS = 16
ROUNDS = 5
SECONDS = 6.0


def measure() -> list[dict[str, str | float]]:
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for number, (variant, precision) in enumerate(BUNDLES):
            bundle = Path(temporary) / str(number)
            write_bundle(random_checkpoint(variant), bundle, replace=False, precision=precision)
            for what, graph in (("labels", CLASSIFY_GRAPH), ("labels and maps", EXPLAIN_GRAPH)):
                name = f"ViT-{variant}, {precision}, {what}"
                rows.append({"model and answer": name, **row(bundle, graph, explain=graph == EXPLAIN_GRAPH)})
    return rows


def row(bundle: Path, graph: str, *, explain: bool) -> dict[str, str | float]:
    opened = session(bundle / graph)
    runs = {batch: runner(opened, batch) for batch in BATCHES}
    raw_rates: dict[int, list[float]] = {batch: [] for batch in BATCHES}
    request = post("/classify" if explain else "/classify?attention=false", jpeg(), "image/jpeg")
    served = []
    with running(bundle, PATIENT) as server:
        for _ in range(ROUNDS):
            for batch, run in runs.items():
                raw_rates[batch].append(batch / seconds_of(run))
            served.append(server.load(request, SECONDS, connections=CONNECTIONS))
    best, raw = max(((b, statistics.median(rates)) for b, rates in raw_rates.items()), key=lambda pair: pair[1])
    rate, p50, p99 = (statistics.median(s[name] for s in served) for name in ("images_per_s", "p50_ms", "p99_ms"))
    busy = statistics.median(s["cpu_s"] / s["images"] for s in served)
    return {
        "raw session.run, images/s (batch)": f"{raw:.1f} ({best})",
        "served, images/s": round(rate, 1),
        "p50 / p99, ms": f"{p50:.0f} / {p99:.0f}",
        "ratio": round(rate / raw, 2),
        "CPU ms per image, server": round(1000 * busy, 1),
        "ratio by its CPU": round(allowed_cores() / busy / raw, 2),
    }


def seconds_of(run: Callable[[], None]) -> float:
    """Median seconds of one run, over about a second."""
    times = []
    end = time.perf_counter() + 1.0
    while time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)
