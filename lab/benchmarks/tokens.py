"""Images served per second with patch tokens and without: ViT-S/16 in fp32, the same JPEG at 16 connections."""

import statistics
import tempfile
from functools import partial
from pathlib import Path

from lab.benchmarks.random_model import random_bundle
from lab.benchmarks.record import Rows
from lab.benchmarks.rounds import in_turn, quartiles, ratios
from lab.benchmarks.under_load import under_load
from tests.support.connection import JPEG, post
from tests.support.pictures import jpeg
from tests.support.server import PATIENT, running

PATHS = {
    "labels": "/classify?attention=false",
    "embedding": "/embed",
    "patches, float16": "/embed?tokens=patches&dtype=float16",
    "patches, float32": "/embed?tokens=patches",
}
CONNECTIONS = 16
ROUNDS = 7
SECONDS = 5.0


def measure() -> Rows:
    with tempfile.TemporaryDirectory() as folder, running(random_bundle(Path(folder), "S/16"), **PATIENT) as server:
        load = partial(under_load, server, seconds=SECONDS, connections=CONNECTIONS)
        served = in_turn({name: partial(load, post(jpeg(), JPEG, path=path)) for name, path in PATHS.items()}, ROUNDS)
    rates = {name: [each["images_per_s"] for each in runs] for name, runs in served.items()}
    return [
        {
            "answer, ViT-S/16 in fp32": name,
            "images/s": quartiles(of_runs, 1),
            "of labels": round(statistics.median(ratios(of_runs, rates["labels"])), 2),
        }
        for name, of_runs in rates.items()
    ]
