"""This service with each engine of the CPU, in each precision: ViT-S/16, JPEG in, JSON out.

Servers are started one after the other, in rounds over all. In each round a server is asked for labels and for labels
with every map by 16 connections, and then by one. Ratios are those to the first in the same round.
"""

import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

import httpx
from tqdm import tqdm

from app.bundle import Precision
from export.bundle import write_bundle
from tests.benchmarks.load import post
from tests.benchmarks.pictures import jpeg
from tests.benchmarks.random_model import random_checkpoint
from tests.benchmarks.record import Rows
from tests.benchmarks.server import PATIENT, running
from tests.benchmarks.spread import quartiles, ratios

VARIANT = "S/16"
PRECISIONS = [precision for precision in get_args(Precision) if precision != "fp16"]  # that one is for GPUs
ENGINES = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}
CONNECTIONS = 16
ROUNDS = 5
WARM_UP_SECONDS = 1.5  # of each answer; batch sizes are tried meanwhile
SECONDS = 4.0
REQUESTS = {
    what: post(f"/classify{query}", jpeg(), "image/jpeg")
    for what, query in (("labels", "?attention=false"), ("labels and every map", ""))
}


@dataclass
class Found:
    """Of one engine in one precision, round by round."""

    rates: dict[str, list[float]] = field(default_factory=lambda: {what: [] for what in REQUESTS})
    lone: list[float] = field(default_factory=list)  # p50, ms
    starts: list[float] = field(default_factory=list)  # seconds to ready
    computes_in: str = ""


def measure() -> Rows:
    with tempfile.TemporaryDirectory() as temporary:
        bundles = {precision: Path(temporary, precision) for precision in PRECISIONS}
        for precision, bundle in bundles.items():
            write_bundle(random_checkpoint(VARIANT), bundle, replace=False, precision=precision)
        found = {(engine, precision): Found() for engine in ENGINES for precision in PRECISIONS}
        for _ in tqdm(range(ROUNDS), desc="rounds"):
            for (engine, precision), figures in found.items():
                ask(bundles[precision], engine, figures)
    return list(rows(found))


def ask(bundle: Path, engine: str, found: Found) -> None:
    with running(bundle, {"VIT_ENGINE": engine, "VIT_DEVICE": "cpu", **PATIENT}) as server:
        found.starts.append(server.seconds_to_ready)
        found.computes_in = httpx.get(f"{server.url}/model").json()["computes_in"]
        for request in REQUESTS.values():
            server.load(request, WARM_UP_SECONDS, connections=CONNECTIONS)
        for what, request in REQUESTS.items():
            found.rates[what].append(server.load(request, SECONDS, connections=CONNECTIONS)["images_per_s"])
        found.lone.append(server.load(REQUESTS["labels"], SECONDS, connections=1)["p50_ms"])


def rows(found: dict[tuple[str, str], Found]) -> Iterator[dict[str, str | float]]:
    base = next(iter(found.values()))
    for (engine, precision), figures in found.items():
        row: dict[str, str | float] = {
            "engine": ENGINES[engine],
            "bundle": precision,
            "computed in": figures.computes_in,
        }
        for what, rates in figures.rates.items():
            row[f"{what}, images/s (quartiles)"] = quartiles(rates, 1)
            row[f"{what}, ratio"] = round(statistics.median(ratios(rates, base.rates[what])), 2)
        row["lone request, p50 ms"] = round(statistics.median(figures.lone), 1)
        row["its ratio"] = round(statistics.median(ratios(figures.lone, base.lone)), 2)
        row["start to ready, s"] = round(statistics.median(figures.starts), 2)
        yield row
