"""This service with each engine of the CPU, in each precision: ViT-S/16, JPEG in, JSON out.

Servers start one after the other, in rounds over all. Ratios are those to the first in the same round.
"""

import statistics
import tempfile
from functools import partial
from pathlib import Path
from typing import NamedTuple, get_args

import httpx

from app.bundle import Precision
from lab.benchmarks.random_model import random_bundle
from lab.benchmarks.record import Row, Rows
from lab.benchmarks.rounds import in_turn, quartiles, ratios
from lab.benchmarks.under_load import under_load
from tests.support.pictures import classify_jpeg
from tests.support.server import PATIENT, running

VARIANT = "S/16"
PRECISIONS = [precision for precision in get_args(Precision) if precision != "fp16"]  # that one is for GPUs
ENGINES = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}
CONNECTIONS = 16
ROUNDS = 5
WARM_UP_SECONDS = 4.0  # of each answer; streams are opened and batch sizes tried meanwhile
SECONDS = 4.0
QUERIES = {"labels": "?attention=false", "labels and every map": "?attention=now"}


class Round(NamedTuple):
    """Of one engine in one precision."""

    computes_in: str
    start: float  # seconds to ready
    rates: dict[str, float]  # images/s
    lone: float  # p50, ms


def measure() -> Rows:
    with tempfile.TemporaryDirectory() as temporary:
        bundles = {precision: random_bundle(Path(temporary), VARIANT, precision) for precision in PRECISIONS}
        servers = {(engine, name): partial(ask, bundles[name], engine) for engine in ENGINES for name in bundles}
        rounds = in_turn(servers, ROUNDS)
    base = next(iter(rounds.values()))
    return [row(*server, of_server, base) for server, of_server in rounds.items()]


def ask(bundle: Path, engine: str) -> Round:
    with running(bundle, engine=engine, **PATIENT) as server:
        computes_in = httpx.get(f"{server.url}/model").json()["computes_in"]
        requests = {what: classify_jpeg(query) for what, query in QUERIES.items()}
        for request in requests.values():
            under_load(server, request, WARM_UP_SECONDS, connections=CONNECTIONS)
        loads = {
            what: under_load(server, request, SECONDS, connections=CONNECTIONS) for what, request in requests.items()
        }
        rates = {what: figures["images_per_s"] for what, figures in loads.items()}
        lone = under_load(server, requests["labels"], SECONDS, connections=1)["p50_ms"]
        return Round(computes_in, server.seconds_to_ready, rates, lone)


def row(engine: str, precision: str, rounds: list[Round], base: list[Round]) -> Row:
    """Ratios are those to `base`, which is asked in the same rounds."""
    cells: Row = {"engine": ENGINES[engine], "bundle": precision, "computed in": rounds[0].computes_in}
    for what in QUERIES:
        rates = [each.rates[what] for each in rounds]
        cells[f"{what}, images/s (quartiles)"] = quartiles(rates, 1)
        cells[f"{what}, ratio"] = round(statistics.median(ratios(rates, [each.rates[what] for each in base])), 2)
    lone = [each.lone for each in rounds]
    cells["lone request, p50 ms"] = round(statistics.median(lone), 1)
    cells["its ratio"] = round(statistics.median(ratios(lone, [each.lone for each in base])), 2)
    cells["start to ready, s"] = round(statistics.median(each.start for each in rounds), 2)
    return cells
