"""How long ten clients wait for labels beside a client that measures one map after the other: ViT-S/16 in int8."""

import statistics
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from lab.benchmarks.random_model import random_bundle
from lab.benchmarks.record import Rows
from lab.benchmarks.rounds import in_turn, times
from lab.benchmarks.under_load import timed_under_load
from tests.support.connection import JPEG, post
from tests.support.pictures import classify_jpeg, jpeg
from tests.support.server import PATIENT, Server, running

CLIENTS = 10
ROUNDS = 5
SECONDS = 10.0
MEASURED = post(jpeg(), JPEG, path="/attention?method=measured")


class Waits(NamedTuple):
    """In milliseconds."""

    labels: list[float]
    maps: list[float]


def measure() -> Rows:
    with (
        tempfile.TemporaryDirectory() as folder,
        running(random_bundle(Path(folder), "S/16", "int8"), **PATIENT) as server,
    ):
        served = in_turn({"nothing": partial(_alone, server), "measured maps": partial(_beside, server)}, ROUNDS)
    return [
        {
            f"{CLIENTS} clients beside": name,
            "answers/s": round(sum(len(run.labels) for run in runs) / SECONDS / ROUNDS, 1),
            "p50 / p99, ms": times([wait for run in runs for wait in run.labels]),
            "a map, s": _median([wait for run in runs for wait in run.maps]),
        }
        for name, runs in served.items()
    ]


def _alone(server: Server) -> Waits:
    labels = timed_under_load(server, classify_jpeg("?attention=false"), SECONDS, connections=CLIENTS)[1]["200"]
    return Waits(labels, [])


def _beside(server: Server) -> Waits:
    with ThreadPoolExecutor() as pool:
        maps = pool.submit(timed_under_load, server, MEASURED, SECONDS, connections=1)
        return _alone(server)._replace(maps=maps.result()[1]["200"])


def _median(milliseconds: list[float]) -> str:
    """In seconds; nothing where there are none."""
    return f"{statistics.median(milliseconds) / 1000:.1f}" if milliseconds else ""
