"""Images served per second beside raw runs of the model in their best arrangement: JPEG in, JSON out, 16 connections.

First every arrangement has a short loop, for the service's engine and for the plain export in ONNX Runtime (always
fp32, labels alone). The best three of each take turns with the server, in rounds. The load generator and the server
share the cores, so the table also gives the rate with all cores to itself: cores / (CPU seconds per image).
"""

import statistics
import tempfile
from functools import cache
from pathlib import Path

import torch
from tqdm import tqdm

from app.bundle import Graph, Precision
from app.machine import allowed_cores
from lab.benchmarks.engines import PRECISIONS
from lab.benchmarks.plain_export import export_plainly
from lab.benchmarks.random_model import random_bundle, random_checkpoint
from lab.benchmarks.raw import Arrangement, Open, RawLoop, of_bundle, of_onnx_runtime
from lab.benchmarks.record import Row, Rows
from lab.benchmarks.rounds import quartiles, ratios
from lab.benchmarks.under_load import timed_under_load, under_load
from tests.support.pictures import classify_jpeg
from tests.support.server import PATIENT, running

BUNDLES: tuple[tuple[str, Precision], ...] = (
    ("Ti/16", "fp32"),
    *(("S/16", precision) for precision in PRECISIONS),
    ("B/16", "fp32"),
)
GRAPHS: dict[str, Graph] = {"labels": "classify", "labels and maps": "explain"}
CONNECTIONS = 16
SEARCH_SECONDS = 0.6  # of each arrangement
CANDIDATES = 3
ROUNDS = 5
RAW_SECONDS = 1.5
SECONDS = 6.0

Searched = tuple[RawLoop, list[Arrangement]]  # and its best


def measure() -> Rows:
    rows: Rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)

        @cache
        def plain(variant: str) -> Searched:
            path = folder / f"{variant.replace('/', '-')}.onnx"
            export_plainly(random_checkpoint(variant).model, torch.zeros(2, 3, 224, 224), path)
            return searched(of_onnx_runtime(path))

        for variant, precision in tqdm(BUNDLES, desc="models"):
            bundle = random_bundle(folder, variant, precision)
            for what, graph in GRAPHS.items():
                loops = [searched(of_bundle(bundle, graph)), plain(variant)]
                cells = row(bundle, loops, f"?attention={'now' if graph == 'explain' else 'false'}")
                rows.append({"model and answer": f"ViT-{variant}, {precision}, {what}", **cells})
    return rows


def searched(opened: Open) -> Searched:
    raw = RawLoop(opened)
    return raw, raw.best(CANDIDATES, SEARCH_SECONDS)


def row(bundle: Path, loops: list[Searched], query: str) -> Row:
    """`loops` are that of the bundle and that of the plain export."""
    request = classify_jpeg(query)
    raw_rates: list[dict[Arrangement, list[float]]] = [{one: [] for one in candidates} for _, candidates in loops]
    served, waits = [], []
    with running(bundle, **PATIENT) as server:
        under_load(server, request, SECONDS / 4, connections=CONNECTIONS)
        for _ in range(ROUNDS):
            for (raw, _), rates in zip(loops, raw_rates, strict=True):
                for one, found in rates.items():
                    found.append(raw.rate(one, RAW_SECONDS))
            figures, milliseconds = timed_under_load(server, request, SECONDS, connections=CONNECTIONS)
            served.append(figures)
            waits += milliseconds["200"]
    of_served = [each["images_per_s"] for each in served]
    (best, of_best), (_, of_plain) = (
        max(rates.items(), key=lambda item: statistics.median(item[1])) for rates in raw_rates
    )
    busy = statistics.median(each["cpu_s"] / each["images"] for each in served)
    raw_rate = statistics.median(of_best)
    return {
        "best raw arrangement": str(best),
        "raw, images/s": quartiles(of_best, 1),
        "raw, plain export, images/s": quartiles(of_plain, 1),
        "served, images/s": quartiles(of_served, 1),
        "served / best raw": quartiles(ratios(of_served, of_best), 2),
        "served / best raw, plain export": quartiles(ratios(of_served, of_plain), 2),
        "p50, ms": round(statistics.median(waits)),
        "CPU ms per image, server": round(1000 * busy, 1),
        "ratio by its CPU": round(allowed_cores() / busy / raw_rate, 2),
    }
