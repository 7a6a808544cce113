"""The whole service over loopback, from load generators on the same cores: a JPEG in, JSON out; and, without decoding,
batches of pixels in the Open Inference Protocol.
"""

import statistics
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import NamedTuple

from app.bundle import Bundle
from app.machine import allowed_cores
from lab.benchmarks.record import Row, Rows
from lab.benchmarks.under_load import under_load
from lab.gpu.bundles import Place, Tables
from lab.gpu.card import used_mib
from lab.gpu.parity import pictures
from tests.support.connection import tensor
from tests.support.pictures import classify_jpeg
from tests.support.server import PATIENT, Server, running

DEVICE = "cuda"
QUERIES = {"labels": "?attention=false", "default": "", "labels and maps": "?attention=now"}
PIXELS_IN_A_REQUEST = 16  # images, the most that the settings allow by default
CONNECTIONS = (1, 32, 128, 256)
GENERATORS = 4
REPLICAS = (2, 4, 8)
CONNECTIONS_OF_A_REPLICA = 32
MAX_IMAGES = 4096  # in progress: every connection's
SERVED = ("b16-fp16", "s16-fp16")


class Load(NamedTuple):
    request: bytes
    images: int  # in it


def requests(bundle: Bundle) -> dict[str, Load]:
    """By what is answered."""
    manifest, count = bundle.manifest, PIXELS_IN_A_REQUEST
    shape = [count, *manifest.image.size, 3]
    pixels = tensor(f"/v2/models/{manifest.name}/infer", shape, "UINT8", pictures(bundle, count).tobytes())
    of_jpeg = {what: Load(classify_jpeg(query), 1) for what, query in QUERIES.items()}
    return {**of_jpeg, f"labels of pixels (V2, UINT8), {count} images in a request": Load(pixels, count)}


def measure(place: Place) -> Tables:
    rows: Rows = []
    for name, bundle in place.bundles(*SERVED).items():
        rows += served(name, bundle, replicas=1, connections=CONNECTIONS, seconds=place.seconds)
    return {"rates": rows}


def measure_replicas(place: Place) -> Tables:
    rows: Rows = []
    for name, bundle in place.bundles(SERVED[0]).items():
        for count in REPLICAS:
            connections = (count * CONNECTIONS_OF_A_REPLICA,)
            rows += served(name, bundle, replicas=count, connections=connections, seconds=place.seconds)
    return {"rates": rows}


def served(name: str, bundle: Bundle, *, replicas: int, connections: Sequence[int], seconds: float) -> Rows:
    """Replicas share the GPU and the cores. Each load has as many connections to all of them together."""
    rows: Rows = []
    before = used_mib()
    workers = max(allowed_cores() // replicas, 1)
    settings = {"device": DEVICE, "decode_workers": workers, "max_images_in_progress": MAX_IMAGES, **PATIENT}
    with ExitStack() as stack, ThreadPoolExecutor(replicas) as pool:
        servers = list(pool.map(stack.enter_context, [running(bundle.folder, **settings) for _ in range(replicas)]))
        for what, load in requests(bundle).items():
            loads(servers, load, seconds / 4, connections=GENERATORS)
            for count in connections:
                rates = loads(servers, load, seconds, connections=count)
                row: Row = {"bundle": name, "replicas": replicas, "answer": what, "connections": count}
                rows.append({**row, **rates, "MiB of the GPU": round(used_mib() - before)})
    return rows


def loads(servers: Sequence[Server], load: Load, seconds: float, *, connections: int) -> dict[str, float]:
    """Several generators at once, because one fills a core sooner than the service fills sixteen."""
    generators = max(min(GENERATORS, connections) // len(servers), 1) * len(servers)
    each = max(connections // generators, 1)
    before = sum(server.cpu_seconds() for server in servers)
    with ThreadPoolExecutor(generators) as pool:
        asked = [servers[i % len(servers)] for i in range(generators)]
        figures = list(pool.map(lambda server: under_load(server, load.request, seconds, connections=each), asked))
    images = load.images * sum(each["images"] for each in figures)
    used = sum(server.cpu_seconds() for server in servers) - before
    return {
        "images/s": round(load.images * sum(each["images_per_s"] for each in figures), 1),
        "p50, ms": round(statistics.median(each["p50_ms"] for each in figures), 1),
        "p99, ms": round(max(each["p99_ms"] for each in figures), 1),
        "CPU ms per image, server": round(1000 * used / images, 2),
        "generators": round(1000 * sum(each["generator_cpu_s"] for each in figures) / images, 2),
    }
