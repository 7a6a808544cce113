"""How long ten clients wait for labels beside a client that measures one map after the other: ViT-S/16 in int8."""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from lab.benchmarks.random_model import random_bundle
from lab.benchmarks.record import Rows
from lab.benchmarks.load import percentile
from lab.benchmarks.rounds import in_turn
from lab.benchmarks.under_load import timed_under_load
from tests.support.connection import JPEG, post
from tests.support.pictures import classify_jpeg, jpeg
from tests.support.server import PATIENT, Server, running

CLIENTS = 10
ROUNDS = 5
SECONDS = 10.0
MEASURED = post(jpeg(), JPEG, path="/attention?method=measured")


def measure() -> Rows:
    with tempfile.TemporaryDirectory() as folder:
        with running(random_bundle(Path(folder), "S/16", "int8"), **PATIENT) as server:
            alone, beside = partial(_alone, server), partial(_beside, server)
            served = in_turn({"nothing": lambda: (alone(), []), "measured maps": beside}, ROUNDS)
    return [
        {
            f"{CLIENTS} clients beside": name,
            "answers/s": round(sum(len(waits) for waits, _ in runs) / SECONDS / ROUNDS, 1),
            "p50, ms": round(percentile([wait for waits, _ in runs for wait in waits], 0.5)),
            "p99, ms": round(percentile([wait for waits, _ in runs for wait in waits], 0.99)),
            "a map, s": round(percentile([wait for _, maps in runs for wait in maps], 0.5) / 1000, 1),
        }
        for name, runs in served.items()
    ]


def _alone(server: Server) -> list[float]:
    """Milliseconds."""
    return timed_under_load(server, classify_jpeg("?attention=false"), SECONDS, connections=CLIENTS)[1]["200"]


def _beside(server: Server) -> tuple[list[float], list[float]]:
    """The same, and those of the maps."""
    with ThreadPoolExecutor() as pool:
        maps = pool.submit(timed_under_load, server, MEASURED, SECONDS, connections=1)
        return _alone(server), maps.result()[1]["200"]
