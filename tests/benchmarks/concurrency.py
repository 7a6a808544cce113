"""Two model runs at a time against one, in the whole service: ViT-S/16, JPEG in, labels out."""

import statistics
import tempfile
from pathlib import Path

from app.bundle import Precision
from export.bundle import write_bundle
from tests.benchmarks.load import post
from tests.benchmarks.overhead import milliseconds
from tests.benchmarks.pictures import jpeg
from tests.benchmarks.random_model import random_checkpoint
from tests.benchmarks.server import PATIENT, Server, running

PRECISIONS: tuple[Precision, ...] = ("fp32", "int8")
WAYS = {"one at a time": "tests.benchmarks.one_at_a_time", "two at a time": "app"}
CONNECTIONS = 16
LOAD = 0.75  # of the capacity with one run at a time
ROUNDS = 3
SECONDS = 6.0
LONE = 20  # requests, sent one after the other


def measure() -> list[dict[str, str | float]]:
    rows: list[dict[str, str | float]] = []
    for precision in PRECISIONS:
        with tempfile.TemporaryDirectory() as temporary:
            bundle = Path(temporary) / "bundle"
            write_bundle(random_checkpoint("S/16"), bundle, replace=False, precision=precision)
            found: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
            rate = 0.0
            for _ in range(ROUNDS):
                for way, module in WAYS.items():
                    with running(bundle, PATIENT, module=module) as server:
                        found[way].append(one_round(server, rate))
                        rate = rate or LOAD * found[way][0]["images/s"]
        for way, rounds in found.items():
            of = {name: statistics.median(r[name] for r in rounds if name in r) for name in rounds[-1]}
            open_p50, open_p99 = of["open p50"], of["open p99"]
            rows.append(
                {
                    "model runs": f"{precision}, {way}",
                    "images/s": round(of["images/s"], 1),
                    f"p50 / p99, {CONNECTIONS} connections, ms": f"{of['p50']:.0f} / {of['p99']:.0f}",
                    "CPU ms per image": round(of["cpu"], 1),
                    f"p50 / p99 at {LOAD:.0%} of the capacity with one, ms": f"{open_p50:.0f} / {open_p99:.0f}",
                    "p50 of a lone request, ms": round(of["lone"]),
                }
            )
    return rows


def one_round(server: Server, rate: float) -> dict[str, float]:
    request = post("/classify?attention=false", jpeg(), "image/jpeg")
    server.load(request, SECONDS / 4, connections=CONNECTIONS)
    closed = server.load(request, SECONDS, connections=CONNECTIONS)
    found = {
        "images/s": closed["images_per_s"],
        "p50": closed["p50_ms"],
        "p99": closed["p99_ms"],
        "cpu": 1000 * closed["cpu_s"] / closed["images"],
        "lone": statistics.median(milliseconds(server, request, LONE)),
    }
    if rate:  # known after the first round
        opened = server.load(request, SECONDS, rate=rate)
        found |= {"open p50": opened["p50_ms"], "open p99": opened["p99_ms"]}
    return found
