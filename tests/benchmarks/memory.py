"""Start to ready, and resident memory of the serving process: the demo bundle and ViT-B/16."""

import tempfile
from pathlib import Path

import httpx

from app.bundle import WEIGHTS
from app.settings import DEMO_BUNDLE
from export.bundle import write_bundle
from tests.benchmarks.pictures import jpeg
from tests.benchmarks.random_model import random_checkpoint
from tests.benchmarks.server import running

REQUESTS = 50


def measure() -> list[dict[str, str | float]]:
    with tempfile.TemporaryDirectory() as temporary:
        large = Path(temporary) / "base"
        write_bundle(random_checkpoint("B/16"), large, replace=False)
        return [_row("demo", DEMO_BUNDLE), _row("ViT-B/16", large)]


def _row(name: str, bundle: Path) -> dict[str, str | float]:
    with running(bundle) as server:
        fresh, busy = server.resident_mib(), server.cpu_seconds()
        for _ in range(REQUESTS):
            httpx.post(f"{server.url}/classify", content=jpeg(), timeout=60).raise_for_status()
        return {
            "bundle": name,
            "weights, MiB": round((bundle / WEIGHTS).stat().st_size / 2**20, 1),
            "start to ready, s": round(server.seconds_to_ready, 2),
            "s of a core": round(busy, 2),
            "resident when ready, MiB": round(fresh),
            f"after {REQUESTS} requests, MiB": round(server.resident_mib()),
        }
