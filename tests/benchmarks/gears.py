"""Two gears against one in the whole service: ViT-S/16, JPEG in, labels out; and which runs as the load changes."""

import json
import statistics
import tempfile
import time
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

from tqdm import tqdm

from app.bundle import Precision
from export.bundle import write_bundle
from tests.benchmarks.load import post
from tests.benchmarks.overhead import milliseconds
from tests.benchmarks.pictures import jpeg
from tests.benchmarks.random_model import random_checkpoint
from tests.benchmarks.server import PATIENT, Server, running

Row = dict[str, str | float]

PRECISIONS: tuple[Precision, ...] = ("fp32", "int8")
WAYS = {"one gear": "tests.benchmarks.one_gear", "two gears": "app"}
CONNECTIONS = 16
LOAD = 0.8  # of the capacity with one gear
ROUNDS = 8
SECONDS = 5.0
LONE = 12  # requests a round, sent one after the other
STEPS = (1, 2, 3, 4, 16, 4, 3, 2, 1)  # connections, one number after the other
STEP_SECONDS = 6.0


def measure() -> list[Row]:
    rows: list[Row] = []
    for precision in PRECISIONS:
        with tempfile.TemporaryDirectory() as temporary, ExitStack() as servers:
            bundle = Path(temporary) / "bundle"
            write_bundle(random_checkpoint("S/16"), bundle, replace=False, precision=precision)
            up = {way: servers.enter_context(running(bundle, PATIENT, module=module)) for way, module in WAYS.items()}
            request = post("/classify?attention=false", jpeg(), "image/jpeg")
            found: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
            for server in up.values():
                server.load(request, SECONDS, connections=CONNECTIONS)
            rate = LOAD * up["one gear"].load(request, SECONDS, connections=CONNECTIONS)["images_per_s"]
            for _ in tqdm(range(ROUNDS), desc=precision):
                for way, server in up.items():
                    found[way].append(one_round(server, request, rate))
        rows += [row(precision, way, rounds, found["one gear"]) for way, rounds in found.items()]
    return rows


def row(precision: str, way: str, rounds: list[dict[str, float]], base: list[dict[str, float]]) -> Row:
    of = {name: statistics.median(r[name] for r in rounds) for name in rounds[0]}
    ratios = [r["images/s"] / b["images/s"] for r, b in zip(rounds, base, strict=True)]
    low, _, high = statistics.quantiles(ratios, n=4)
    return {
        "engine": f"{precision}, {way}",
        "images/s": round(of["images/s"], 1),
        "ratio (quartiles)": f"{statistics.median(ratios):.2f} ({low:.2f} to {high:.2f})",
        f"p50 / p99, {CONNECTIONS} connections, ms": f"{of['p50']:.0f} / {of['p99']:.0f}",
        "CPU ms per image": round(of["cpu"], 1),
        f"p50 / p99 at {LOAD:.0%} of the capacity with one, ms": f"{of['open p50']:.0f} / {of['open p99']:.0f}",
        "p50 of a lone request, ms": round(of["lone"]),
    }


def one_round(server: Server, request: bytes, rate: float) -> dict[str, float]:
    closed = server.load(request, SECONDS, connections=CONNECTIONS)
    opened = server.load(request, SECONDS, rate=rate)
    return {
        "images/s": closed["images_per_s"],
        "p50": closed["p50_ms"],
        "p99": closed["p99_ms"],
        "cpu": 1000 * closed["cpu_s"] / closed["images"],
        "open p50": opened["p50_ms"],
        "open p99": opened["p99_ms"],
        "lone": statistics.median(milliseconds(server, request, LONE)),
    }


def measure_shifts() -> list[Row]:
    """Which gear runs while the number of connections goes up and down."""
    with tempfile.TemporaryDirectory() as temporary:
        bundle, planned = Path(temporary) / "bundle", Path(temporary) / "gears"
        write_bundle(random_checkpoint("S/16"), bundle, replace=False)
        with running(bundle, {**PATIENT, "GEARS": str(planned)}, module="tests.benchmarks.watched_gears") as server:
            request = post("/classify?attention=false", jpeg(), "image/jpeg")
            server.load(request, STEP_SECONDS, connections=CONNECTIONS)
            steps = []
            for connections in tqdm(STEPS, desc="steps"):
                start = time.time()
                steps.append((connections, start, server.load(request, STEP_SECONDS, connections=connections)))
        runs = [json.loads(line) for line in planned.read_text().splitlines()]
    ends = [start for _, start, _ in steps[1:]] + [time.time()]
    return [
        shift(connections, [run for run in runs if start <= run[0] < end], found)
        for (connections, start, found), end in zip(steps, ends, strict=True)
    ]


def shift(connections: int, runs: list[list[float | str]], found: dict[str, float]) -> Row:
    gears = [gear for _, gear, _ in runs]
    changes = sum(a != b for a, b in pairwise(gears))
    return {
        "connections": connections,
        "images/s": round(found["images_per_s"], 1),
        "p50 / p99, ms": f"{found['p50_ms']:.0f} / {found['p99_ms']:.0f}",
        "runs": len(runs),
        "of them narrow": f"{gears.count('narrow') / len(runs):.0%}",
        "changes of gear": changes,
    }
