"""`python -m tests.load.overload [SECONDS]`: how requests are answered when more arrive than can be served.

The real server runs ViT-Ti/16 (random weights) with default settings; requests ask for labels and maps of a JPEG of
500 x 334. Its capacity is measured with 8 connections (closed loop). Then requests arrive at random times (open loop,
Poisson) at multiples of the capacity. The generator shares the cores. Meanwhile /readyz is requested ten times a
second. The JSON goes beside this file, the table to docs/overload.md.
"""

import math
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from tqdm import tqdm

from export.bundle import write_bundle
from tests.benchmarks.__main__ import publish
from tests.benchmarks.load import percentile, post
from tests.benchmarks.pictures import jpeg
from tests.benchmarks.random_model import random_checkpoint
from tests.benchmarks.server import Server, running

VARIANT = "Ti/16"
FACTORS = (0.5, 1, 2, 5, 10)
CONNECTIONS = 8
SECONDS = 20.0  # of each load
PROBE_EVERY_S = 0.1
PROBE_TIMEOUT_S = 5.0


def measure(seconds: float) -> list[dict[str, str | float]]:
    request = post("/classify", jpeg(), "image/jpeg")
    with tempfile.TemporaryDirectory() as temporary:
        bundle = Path(temporary) / "bundle"
        write_bundle(random_checkpoint(VARIANT), bundle, replace=False)
        with running(bundle) as server:
            server.load(request, seconds / 4, connections=CONNECTIONS)
            capacity = server.load(request, seconds, connections=CONNECTIONS)["images_per_s"]
            runs = [loaded(server, request, seconds, factor * capacity) for factor in tqdm(FACTORS)]
    peak = max(capacity, *(run["images_per_s"] for run in runs))
    return [row(run, factor, capacity, peak) for factor, run in zip(FACTORS, runs, strict=True)]


def loaded(server: Server, request: bytes, seconds: float, rate: float) -> dict[str, float]:
    with probed(server) as probes:
        found = server.load(request, seconds, rate=rate)
    return {**found, "probe_p99_ms": percentile(probes, 0.99), "probes_failed": probes.count(PROBE_TIMEOUT_S)}


def row(run: dict[str, float], factor: float, capacity: float, peak: float) -> dict[str, str | float]:
    return {
        "offered / capacity": factor,
        "offered, requests/s": round(factor * capacity, 1),
        "answered, requests/s": round(run["images_per_s"], 1),
        "answered / peak": round(run["images_per_s"] / peak, 2),
        "answered, p50 / p99, ms": times(run["p50_ms"], run["p99_ms"]),
        "refused, %": round(100 * run["refused"] / run["offered"], 1),
        "refused, p50 / p99, ms": times(run["refused_p50_ms"], run["refused_p99_ms"]),
        "timeouts": run["timeouts"],
        "resets": run["resets"],
        "other answers": run["other_statuses"],
        "/readyz, p99, ms": round(run["probe_p99_ms"], 1),
        "/readyz failed": run["probes_failed"],
        "CPU of the server, cores": round(run["cpu_s"] / run["seconds"], 2),
        "of the load generator": round(run["generator_cpu_s"] / run["seconds"], 2),
        "of other processes": round(run["others"], 2),
    }


def times(p50: float, p99: float) -> str:
    return "" if math.isnan(p50) else f"{p50:.0f} / {p99:.0f}"


@contextmanager
def probed(server: Server) -> Iterator[list[float]]:
    """Seconds of each probe, sent as a balancer does; PROBE_TIMEOUT_S where the answer was not 200."""
    probes: list[float] = []
    done = threading.Event()

    def ask() -> None:
        with httpx.Client(base_url=server.url, timeout=PROBE_TIMEOUT_S) as client:
            while not done.wait(PROBE_EVERY_S):
                start = time.perf_counter()
                try:
                    good = client.get("/readyz").is_success
                except httpx.TransportError:
                    good = False
                probes.append(time.perf_counter() - start if good else PROBE_TIMEOUT_S)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield probes
    finally:
        done.set()
        thread.join()


def main() -> None:
    rows = measure(float(sys.argv[1]) if sys.argv[1:] else SECONDS)
    publish("overload", rows, Path(__file__).parent)


if __name__ == "__main__":
    main()
