"""Time from start to ready, resident memory of the serving processes, and bytes on disk."""

import tempfile
from pathlib import Path

import httpx

from app.bundle import WEIGHTS, Precision
from app.settings import DEMO_BUNDLE
from export.bundle import write_bundle
from tests.benchmarks.pictures import jpeg
from tests.benchmarks.random_model import random_checkpoint
from tests.benchmarks.server import Server, running

REQUESTS = 30
BUNDLES: tuple[tuple[str, Precision], ...] = (("S/16", "fp32"), ("B/16", "fp32"), ("B/16", "int8"))


def measure() -> list[dict[str, str | float]]:
    with tempfile.TemporaryDirectory() as temporary:
        rows = [row("demo", DEMO_BUNDLE, Path(temporary) / "cache-demo")]
        for number, (variant, precision) in enumerate(BUNDLES):
            bundle = Path(temporary) / str(number)
            write_bundle(random_checkpoint(variant), bundle, replace=False, precision=precision)
            rows.append(row(f"ViT-{variant}, {precision}", bundle, Path(temporary) / f"cache-{number}"))
        return rows


def row(name: str, bundle: Path, cache: Path) -> dict[str, str | float]:
    """The first start packs the weights; those after it map what it has packed."""
    variables = {"VIT_CACHE": str(cache)}
    with running(bundle, variables) as server:
        first_s = server.seconds_to_ready
    with running(bundle, variables) as server:
        fresh, busy = server.resident_mib(), server.cpu_seconds()
        classify(server)
        alone = server.resident_mib()
        with running(bundle, variables) as replica:
            classify(replica)
            both = server.resident_mib() + replica.resident_mib()
        return {
            "bundle": name,
            "weights, MiB": mib((bundle / WEIGHTS).stat().st_size),
            "bundle on disk, MiB": mib(sum(file.stat().st_size for file in bundle.rglob("*"))),
            "packed, MiB": mib(sum(file.stat().st_size for file in cache.rglob("*"))),
            "first start to ready, s": round(first_s, 2),
            "second start, s": round(server.seconds_to_ready, 2),
            "second start, CPU s": round(busy, 2),
            "resident when ready, MiB": round(fresh),
            f"after {REQUESTS} requests, MiB": round(alone),
            "a second replica adds, MiB": round(both - alone),
        }


def classify(server: Server) -> None:
    """Half of the requests with maps, half without."""
    for number in range(REQUESTS):
        path = "/classify?attention=false" if number % 2 else "/classify"
        httpx.post(f"{server.url}{path}", content=jpeg(), timeout=60).raise_for_status()


def mib(size: int) -> float:
    return round(size / 2**20, 1)
