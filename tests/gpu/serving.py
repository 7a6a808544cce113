"""The whole service: JPEG in, JSON out, over loopback, from load generators on the same cores."""

import statistics
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from app.machine import allowed_cores
from tests.benchmarks.load import percentile
from tests.benchmarks.pictures import classify_jpeg
from tests.benchmarks.record import Row, Rows
from tests.benchmarks.server import PATIENT, Server, running
from tests.benchmarks.spread import times
from tests.gpu.card import used_mib
from tests.gpu.place import Place, Tables
from tests.load.background import PROBE_TIMEOUT_S
from tests.load.overload import Run, loaded

DEVICE = "cuda"
QUERIES = {"labels": "attention=false", "labels and maps": "attention=true"}
CONNECTIONS = (1, 32, 128, 256)
GENERATORS = 4
REPLICAS = (2, 4, 8)
CONNECTIONS_OF_A_REPLICA = 32
MAX_QUEUE_IMAGES = 1024
WINDOWS = 8  # of the overload
OVERLOAD = 3.0  # times the peak
HALF_OF_THE_QUEUE = 64  # images in work or waiting, when the peak is measured: none is refused
SERVED = ("b16-fp16", "s16-fp16")


def measure(place: Place) -> Tables:
    return {"rates": of_bundles(served, place, *SERVED)}


def measure_replicas(place: Place) -> Tables:
    return {"rates": of_bundles(replicated, place, SERVED[0])}


def measure_overload(place: Place) -> Tables:
    """`place.seconds` is a window's; there are eight."""
    return {"windows": of_bundles(overloaded, place, SERVED[0])}


def of_bundles(measured: Callable[..., Rows], place: Place, *names: str) -> Rows:
    bundles = place.bundles(*names).items()
    return [row for name, bundle in bundles for row in measured(name, bundle.folder, seconds=place.seconds)]


def served(name: str, folder: Path, *, seconds: float) -> Rows:
    rows: Rows = []
    before = used_mib()
    with running(folder, device=DEVICE, max_queue_images=MAX_QUEUE_IMAGES, **PATIENT) as server:
        for what, query in QUERIES.items():
            request = classify_jpeg(f"?{query}")
            server.load(request, seconds / 4, connections=GENERATORS)
            for count in CONNECTIONS:
                rates = loads([server], request, seconds, connections=count)
                rows.append({"bundle": name, "answer": what, "connections": count, **rates})
        about: dict[str, Any] = httpx.get(f"{server.url}/model").json()
        for each in rows:
            each["start to ready, s"] = round(server.seconds_to_ready, 2)
            each["resident MiB"] = round(server.resident_mib())
            each["MiB of the GPU"] = round(used_mib() - before)
            each["batches of"] = about["best_batch"]["explain" if "maps" in str(each["answer"]) else "classify"]
    return rows


def replicated(name: str, folder: Path, *, seconds: float) -> Rows:
    """Several processes of the service share the GPU and the cores."""
    rows: Rows = []
    for count in REPLICAS:
        before = used_mib()
        workers = max(allowed_cores() // count, 1)
        replicas = [running(folder, device=DEVICE, decode_workers=workers, **PATIENT) for _ in range(count)]
        with ExitStack() as stack, ThreadPoolExecutor(count) as pool:
            servers = list(pool.map(stack.enter_context, replicas))
            for what, query in QUERIES.items():
                request = classify_jpeg(f"?{query}")
                loads(servers, request, seconds / 4, connections=GENERATORS)
                connections = count * CONNECTIONS_OF_A_REPLICA
                rates = loads(servers, request, seconds, connections=connections)
                row: Row = {"bundle": name, "replicas": count, "answer": what, "connections": connections}
                rows.append({**row, **rates, "MiB of the GPU": round(used_mib() - before)})
    return rows


def loads(servers: Sequence[Server], request: bytes, seconds: float, *, connections: int) -> dict[str, float]:
    """Several generators at once, because one fills a core sooner than the service fills sixteen."""
    generators = max(min(GENERATORS, connections) // len(servers), 1)
    each = max(connections // (generators * len(servers)), 1)
    waiting = [
        partial(server.load, request, seconds, connections=each) for server in servers for _ in range(generators)
    ]
    before = sum(server.cpu_seconds() for server in servers)
    with ThreadPoolExecutor(len(waiting)) as pool:
        figures = [load.result() for load in [pool.submit(load) for load in waiting]]
    images = sum(each["images"] for each in figures)
    used = sum(server.cpu_seconds() for server in servers) - before
    return {
        "images/s": round(sum(each["images_per_s"] for each in figures), 1),
        "p50, ms": round(statistics.median(each["p50_ms"] for each in figures), 1),
        "p99, ms": round(max(each["p99_ms"] for each in figures), 1),
        "CPU ms per image, server": round(1000 * used / images, 2),
        "generators": round(1000 * sum(each["generator_cpu_s"] for each in figures) / images, 2),
    }


def overloaded(name: str, folder: Path, *, seconds: float) -> Rows:
    """Window by window, so that what grows or slows down in ten minutes is seen."""
    request = classify_jpeg()
    rows: Rows = []
    with running(folder, device=DEVICE) as server:
        peak = server.load(request, seconds / 4, connections=HALF_OF_THE_QUEUE)["images_per_s"]
        for window in range(1, WINDOWS + 1):
            run = loaded(server, request, seconds, OVERLOAD * peak)
            rows.append({
                "bundle": name,
                "window": window,
                "offered, requests/s": round(OVERLOAD * peak, 1),
                **answers(run),
                "resident MiB": round(server.resident_mib()),
                "MiB of the GPU, all": round(used_mib()),
            })  # fmt: skip
    return rows


def answers(run: Run) -> Row:
    figures = run.figures
    return {
        "answered, requests/s": round(figures["images_per_s"], 1),
        "p50 / p99, ms": times(run.answers),
        "refused": round(figures["refused"]),
        "refused, p50 / p99, ms": times(run.refusals),
        "timeouts, resets, other answers": round(figures["timeouts"] + figures["resets"] + figures["other_statuses"]),
        "/readyz, p99, ms": round(percentile(run.probes, 0.99), 1),
        "/readyz failed": run.probes.count(PROBE_TIMEOUT_S),
    }
