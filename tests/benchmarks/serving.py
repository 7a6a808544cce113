"""Images served per second against raw `session.run`: JPEG in, JSON out, ViT-Ti/16, 16 connections.

The load generator and the server share the cores, and decoding needs some of them too. So besides the measured
rate the table has the one that the server's own processor time would allow: cores / (processor seconds an image).
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from app.bundle import CLASSIFY_GRAPH
from app.settings import allowed_cores
from export.bundle import write_bundle
from tests.benchmarks.graphs import runner, session
from tests.benchmarks.load import post
from tests.benchmarks.pictures import jpeg
from tests.benchmarks.random_model import random_checkpoint
from tests.benchmarks.server import Server, running

VARIANT = "Ti/16"
BATCHES = (1, 2, 4, 8, 16)
CONNECTIONS = 16
ROUNDS = 5
SECONDS = 6.0


def measure() -> list[dict[str, str | float]]:
    with tempfile.TemporaryDirectory() as temporary:
        bundle = Path(temporary) / "tiny"
        write_bundle(random_checkpoint(VARIANT), bundle, replace=False)
        raw_rates: dict[int, list[float]] = {batch: [] for batch in BATCHES}
        runs = {batch: runner(session(bundle / CLASSIFY_GRAPH), batch) for batch in BATCHES}
        served = []
        with running(bundle) as server:
            for _ in range(ROUNDS):
                for batch, run in runs.items():
                    raw_rates[batch].append(batch / seconds_of(run))
                served.append(load(server))
    best, raw = max(((b, statistics.median(rates)) for b, rates in raw_rates.items()), key=lambda pair: pair[1])
    rate, p50, p99, generator, total = (statistics.median(values) for values in zip(*served, strict=True))
    cores = allowed_cores()
    # The generator takes this share of the machine; raw session.run on what is left would be slower by as much.
    allowance = 1 - generator * rate / cores
    return [
        {"what": f"raw session.run, best batch ({best})", "images/s": round(raw, 1), "ratio": 1.0},
        {
            "what": f"served, {CONNECTIONS} connections (p50 {p50:.0f} ms, p99 {p99:.0f} ms)",
            "images/s": round(rate, 1),
            "ratio": round(rate / raw, 2),
        },
        {
            "what": f"served, against raw on the cores that the generator leaves ({allowance:.0%})",
            "images/s": round(rate, 1),
            "ratio": round(rate / (raw * allowance), 2),
        },
        {
            "what": f"processor time of the server, {1000 * total:.1f} ms an image, if it had all {cores} cores",
            "images/s": round(cores / total, 1),
            "ratio": round(cores / total / raw, 2),
        },
    ]


def seconds_of(run: Callable[[], None]) -> float:
    """Median seconds of one run, over about a second."""
    times = []
    end = time.perf_counter() + 1.0
    while time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def load(server: Server) -> tuple[float, float, float, float, float]:
    """Images per second, p50 and p99 in ms, and processor seconds an image of the generator and of the server."""
    found = server.load(post("/classify?attention=false", jpeg(), "image/jpeg"), SECONDS, connections=CONNECTIONS)
    of_generator, of_server = (found[name] / found["images"] for name in ("generator_cpu_s", "cpu_s"))
    return found["images_per_s"], found["p50_ms"], found["p99_ms"], of_generator, of_server
