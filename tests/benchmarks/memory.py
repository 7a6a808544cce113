"""Time from start to ready, resident memory of the serving processes, and bytes on disk."""

import tempfile
from pathlib import Path

import httpx

from app.bundle import WEIGHTS, Precision
from app.settings import DEMO_BUNDLE
from export.bundle import write_bundle
from tests.benchmarks.pictures import jpeg
from tests.benchmarks.random_model import random_checkpoint
from tests.benchmarks.server import running

REQUESTS = 50
BUNDLES: tuple[tuple[str, Precision], ...] = (("S/16", "fp32"), ("B/16", "fp32"), ("B/16", "int8"))


def measure() -> list[dict[str, str | float]]:
    with tempfile.TemporaryDirectory() as temporary:
        rows = [row("demo", DEMO_BUNDLE)]
        for number, (variant, precision) in enumerate(BUNDLES):
            bundle = Path(temporary) / str(number)
            write_bundle(random_checkpoint(variant), bundle, replace=False, precision=precision)
            rows.append(row(f"ViT-{variant}, {precision}", bundle))
        return rows


def row(name: str, bundle: Path) -> dict[str, str | float]:
    with running(bundle) as server:
        fresh, busy = server.resident_mib(), server.cpu_seconds()
        for _ in range(REQUESTS):
            httpx.post(f"{server.url}/classify", content=jpeg(), timeout=60).raise_for_status()
        return {
            "bundle": name,
            "weights, MiB": round((bundle / WEIGHTS).stat().st_size / 2**20, 1),
            "bundle on disk, MiB": round(sum(file.stat().st_size for file in bundle.rglob("*")) / 2**20, 1),
            "start to ready, s": round(server.seconds_to_ready, 2),
            "start to ready, CPU s": round(busy, 2),
            "resident when ready, MiB": round(fresh),
            f"after {REQUESTS} requests, MiB": round(server.resident_mib()),
        }
