"""Time from start to ready, memory of the serving processes, and bytes on disk; for docs/benchmarks.md."""

import statistics
import tempfile
from pathlib import Path

import httpx

from app.bundle import WEIGHTS, Precision
from app.settings import DEMO_BUNDLE
from lab.benchmarks.engines import PRECISIONS
from lab.benchmarks.random_model import random_bundle
from lab.benchmarks.record import Row, Rows
from tests.support.pictures import jpeg
from tests.support.server import Server, running

REQUESTS = 30
STARTS = 5  # after the first
BUNDLES: tuple[tuple[str, Precision], ...] = (("S/16", "fp32"), *(("B/16", precision) for precision in PRECISIONS))


def measure() -> Rows:
    with tempfile.TemporaryDirectory() as temporary:
        bundles = (random_bundle(Path(temporary), *each) for each in BUNDLES)
        named = zip(BUNDLES, bundles, strict=True)
        return [row("demo", DEMO_BUNDLE), *(row(f"ViT-{', '.join(each)}", bundle) for each, bundle in named)]


def row(name: str, bundle: Path) -> Row:
    first, *later = [started(bundle) for _ in range(1 + STARTS)]
    with running(bundle) as server:
        fresh = server.resident_mib()
        classify(server)
        alone, private = server.resident_mib(), server.anonymous_mib()
        with running(bundle) as replica:
            classify(replica)
            both = server.resident_mib() + replica.resident_mib()
    return {
        "bundle": name,
        "weights, MiB": round((bundle / WEIGHTS).stat().st_size / 2**20, 1),
        "bundle on disk, MiB": round(sum(file.stat().st_size for file in bundle.rglob("*")) / 2**20, 1),
        "first start to ready, s": round(first[0], 2),
        "second start, s": round(statistics.median(seconds for seconds, _ in later), 2),
        "second start, CPU s": round(statistics.median(cpu_s for _, cpu_s in later), 2),
        "resident when ready, MiB": round(fresh),
        f"after {REQUESTS} requests, MiB": round(alone),
        "of it private, MiB": round(private),
        "a second replica adds, MiB": round(both - alone),
    }


def started(bundle: Path) -> tuple[float, float]:
    """Seconds from start to ready, and those of a core until then."""
    with running(bundle) as server:
        return server.seconds_to_ready, server.cpu_seconds()


def classify(server: Server) -> None:
    """Half of the requests with maps, half without."""
    for number in range(REQUESTS):
        path = f"/classify?attention={'false' if number % 2 else 'now'}"
        httpx.post(f"{server.url}{path}", content=jpeg(), timeout=60).raise_for_status()
