"""`python -m lab.load.overload [SECONDS]`: how requests are answered when more arrive than can be served.

The real server runs ViT-Ti/16 (random weights) with default settings. Its peak is the highest rate that it answers at
in a closed loop. Then, in rounds, the peak is measured again, and requests arrive at random times at multiples of it.
Ratios are medians of those in one round. The generator shares the cores. The table goes to lab/load/README.md.
"""

import statistics
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from lab.benchmarks.__main__ import publish
from lab.benchmarks.load import percentile
from lab.benchmarks.random_model import random_bundle
from lab.benchmarks.record import Row, Rows
from lab.benchmarks.rounds import quartiles, ratios, times
from lab.benchmarks.under_load import timed_under_load, under_load
from lab.load.background import PROBE_TIMEOUT_S, probed
from tests.support.pictures import classify_jpeg
from tests.support.server import running

VARIANT = "Ti/16"
FACTORS = (0.5, 1, 2, 5, 10)
CONNECTIONS = (8, 16, 32)  # with more, some would wait longer than a request may
ROUNDS = 3
SECONDS = 20.0  # of each load in a round
COUNTS = ("offered", "refused", "timeouts", "resets", "other_statuses")
PROBE_EVERY_S = 0.1


class Run(NamedTuple):
    figures: dict[str, float]
    milliseconds: dict[str, list[float]]  # of each answer, by status
    probes: list[float]  # seconds


def measure(seconds: float) -> Rows:
    request = classify_jpeg("?attention=now")
    runs: dict[float, list[Run]] = {factor: [] for factor in FACTORS}
    peaks = []
    with tempfile.TemporaryDirectory() as temporary, running(random_bundle(Path(temporary), VARIANT)) as server:
        under_load(server, request, seconds / 4, connections=CONNECTIONS[0])
        tried = {n: under_load(server, request, seconds / 2, connections=n)["images_per_s"] for n in CONNECTIONS}
        most = max(tried, key=lambda connections: tried[connections])
        for _ in tqdm(range(ROUNDS), desc="rounds"):
            peaks.append(under_load(server, request, seconds, connections=most)["images_per_s"])
            for factor in FACTORS:
                with probed(server, "/readyz", every_s=PROBE_EVERY_S) as probes:
                    figures, milliseconds = timed_under_load(server, request, seconds, rate=factor * peaks[-1])
                runs[factor].append(Run(figures, milliseconds, probes))
    return [row(factor, of_factor, peaks) for factor, of_factor in runs.items()]


def row(factor: float, runs: list[Run], peaks: list[float]) -> Row:
    """Times are those of all rounds; rates are medians over the rounds; counts are their sum."""
    run = {name: statistics.median(each.figures[name] for each in runs) for name in runs[0].figures}
    total = {name: round(sum(each.figures[name] for each in runs)) for name in COUNTS}
    probes = [each for run in runs for each in run.probes]
    return {
        "offered / peak": factor,
        "offered, requests/s": round(factor * statistics.median(peaks), 1),
        "answered, requests/s": round(run["images_per_s"], 1),
        "answered / peak (quartiles)": quartiles(ratios([each.figures["images_per_s"] for each in runs], peaks), 2),
        "answered, p50 / p99, ms": times([each for run in runs for each in run.milliseconds["200"]]),
        "refused, %": round(100 * total["refused"] / total["offered"], 1),
        "refused, p50 / p99, ms": times([each for run in runs for each in run.milliseconds["503"]]),
        **{name: total[name] for name in ("timeouts", "resets")},
        "other answers": total["other_statuses"],
        "/readyz, p99, ms": round(1000 * percentile(probes, 0.99), 1),
        "/readyz failed": probes.count(PROBE_TIMEOUT_S),
        "CPU of the server, cores": round(run["cpu_s"] / run["seconds"], 2),
        "of the load generator": round(run["generator_cpu_s"] / run["seconds"], 2),
        "of other processes": round(run["others"], 2),
    }


if __name__ == "__main__":
    publish("overload", measure(float(sys.argv[1]) if sys.argv[1:] else SECONDS))
