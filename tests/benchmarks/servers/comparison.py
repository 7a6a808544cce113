"""Servers side by side: the same ViT-S/16, a JPEG in, the five likeliest labels as JSON out, on the same cores.

One server is up at a time, and rounds go over all of them. In a round each is loaded three times: 16 connections
(closed loop) for its capacity; then requests at random times (open loop), at 80 % of the capacity just measured; and
at a rate that is the same for all, 80 % of what the slowest can do. The table has medians over rounds.
"""

import asyncio
import re
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tqdm import tqdm

from app.settings import allowed_cores
from tests.benchmarks.load import RefusedError, ask
from tests.benchmarks.server import START_TIMEOUT, Server, free_port, started
from tests.benchmarks.servers.contenders import ROOT, Contender, contenders
from tests.benchmarks.servers.weights import write_weights

CONNECTIONS = 16
LOAD = 0.8
ROUNDS = 3
SECONDS = 6.0
OPEN_SECONDS = 15.0  # a hundred requests and more, so that the slowest in a hundred is not one that was unlucky
WARM_UP_SECONDS = 2.0
THREADS = allowed_cores()


def measure() -> list[dict[str, str | float]]:
    with tempfile.TemporaryDirectory() as temporary:
        weights = Path(temporary)
        write_weights(weights)
        present = [contender for contender in contenders(weights) if is_installed(contender)]
        capacities = [capacity(contender, weights) for contender in tqdm(present, desc="capacity")]
        common = LOAD * min(capacities)
        rounds: list[list[dict[str, float]]] = [[] for _ in present]
        for _ in range(ROUNDS):
            for contender, found in zip(tqdm(present, desc="round"), rounds, strict=True):
                found.append(one_round(contender, weights, common))
    medians = [{key: statistics.median(r[key] for r in found) for key in found[0]} for found in rounds]
    return [row(contender, m, medians[0], common) for contender, m in zip(present, medians, strict=True)]


def is_installed(contender: Contender) -> bool:
    if not contender.python.exists():
        print(f"{contender.name} is left out: `make bench-servers` installs it", file=sys.stderr)
    return contender.python.exists()


def capacity(contender: Contender, weights: Path) -> float:
    with up(contender, weights) as server:
        return server.load(contender.request, SECONDS / 2, connections=CONNECTIONS)["images_per_s"]


def one_round(contender: Contender, weights: Path, common: float) -> dict[str, float]:
    with up(contender, weights) as server:
        closed = server.load(contender.request, SECONDS, connections=CONNECTIONS)
        own = server.load(contender.request, OPEN_SECONDS, rate=LOAD * closed["images_per_s"])
        same = server.load(contender.request, OPEN_SECONDS, rate=common)
    return {
        "images/s": closed["images_per_s"],
        "p50": closed["p50_ms"],
        "p99": closed["p99_ms"],
        "cpu": 1000 * closed["cpu_s"] / closed["images"],
        "others": closed["others"],
        "own p50": own["p50_ms"],
        "own p99": own["p99_ms"],
        "same p50": same["p50_ms"],
        "same p99": same["p99_ms"],
        "failed": own["failed"] + same["failed"],
    }


@contextmanager
def up(contender: Contender, weights: Path) -> Iterator[Server]:
    """The server, warm, and known to give the answer that the weights give."""
    port = free_port()
    folder = weights / "run"
    folder.mkdir(exist_ok=True)
    environment = {
        "PYTHONPATH": str(ROOT),
        "VIT_BENCH_WEIGHTS": str(weights),
        "VIT_BENCH_RUNTIME": contender.runtime,
        "VIT_BENCH_THREADS": str(THREADS),
        "OMP_NUM_THREADS": str(THREADS),
        "TMPDIR": str(folder),
        contender.port_variable: str(port),
        **contender.variables,
    }
    answers: list[bytes] = []

    def ready() -> bool:
        with suppress(RefusedError, OSError, asyncio.IncompleteReadError, TimeoutError):
            answers.append(asyncio.run(asyncio.wait_for(ask(port, contender.request), START_TIMEOUT)))
        return bool(answers)

    try:
        command = [str(contender.python), *contender.arguments]
        with started(command, port=port, environment=environment, ready=ready, folder=folder) as server:
            label = re.search(rb"class \d+", answers[0])
            expected = (weights / "label.txt").read_bytes()
            if not label or label[0] != expected:
                raise RuntimeError(f"{contender.name} answers {answers[0]!r}, and the likeliest label is {expected!r}")
            server.load(contender.request, WARM_UP_SECONDS, connections=CONNECTIONS)
            yield server
    except RuntimeError as error:
        error.add_note((folder / "log").read_text()[-3000:])
        raise


def row(contender: Contender, m: dict[str, float], ours: dict[str, float], common: float) -> dict[str, str | float]:
    return {
        "server": contender.name,
        "runtime": contender.runtime,
        "images/s": round(m["images/s"], 1),
        "ratio": round(m["images/s"] / ours["images/s"], 2),
        f"p50 / p99, {CONNECTIONS} connections, ms": f"{m['p50']:.0f} / {m['p99']:.0f}",
        f"p50 / p99 at {LOAD:.0%} of its own capacity, ms": f"{m['own p50']:.0f} / {m['own p99']:.0f}",
        f"p50 / p99 at {common:.1f} a second, ms": f"{m['same p50']:.0f} / {m['same p99']:.0f}",
        "failed": round(m["failed"]),
        "CPU ms an image": round(m["cpu"]),
        "cores taken by others": round(m["others"], 1),
    }
