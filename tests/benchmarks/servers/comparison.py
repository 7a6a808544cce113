"""Servers side by side: the same ViT-S/16, a JPEG in, the five likeliest labels as JSON out, on the same cores.

All servers run at once and take turns of a few seconds, so that a change of the machine's speed affects them alike. The
others are stopped meanwhile (SIGSTOP), because some use much CPU while idle. Each server is measured under three loads:
16 connections (closed loop), which give its capacity; requests at random times (open loop) at 80 % of its own capacity;
and the same at 80 % of the slowest server's capacity. The table has medians over rounds.
"""

import asyncio
import os
import re
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from tqdm import tqdm

from app.machine import allowed_cores
from tests.benchmarks.load import RefusedError, ask
from tests.benchmarks.server import START_TIMEOUT_S, Server, family, free_port, started
from tests.benchmarks.servers.contenders import ROOT, Contender, contenders
from tests.benchmarks.servers.weights import write_weights

CONNECTIONS = 16
LOAD = 0.8
CLOSED_ROUNDS, CLOSED_SECONDS = 6, 4.0
OPEN_ROUNDS, OPEN_SECONDS = 2, 15.0  # more than a hundred requests, so that p99 is not a single one
WAKE_SECONDS = 1.0  # in which overdue timers run
WARM_UP_SECONDS = 2.0
THREADS = allowed_cores()

Load = dict[str, float]


def measure() -> list[dict[str, str | float]]:
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as running:
        weights = Path(temporary)
        write_weights(weights)
        present = [contender for contender in contenders(weights) if is_installed(contender)]
        servers = []
        for contender in tqdm(present, desc="starting"):
            servers.append(running.enter_context(up(contender, weights)))
            running.enter_context(stopped(servers[-1]))
        closed = in_turns(
            present, servers, CLOSED_ROUNDS, CLOSED_SECONDS, [{"connections": CONNECTIONS}] * len(present)
        )
        capacities = [found["images_per_s"] for found in closed]
        own = in_turns(present, servers, OPEN_ROUNDS, OPEN_SECONDS, [{"rate": LOAD * each} for each in capacities])
        common = LOAD * min(capacities)
        same = in_turns(present, servers, OPEN_ROUNDS, OPEN_SECONDS, [{"rate": common}] * len(present))
    loads = zip(present, closed, own, same, strict=True)
    return [row(contender, *found, ratio_to=capacities[0], common=common) for contender, *found in loads]


def is_installed(contender: Contender) -> bool:
    if not contender.python.exists():
        print(f"{contender.name} is left out: `make bench-servers` installs it", file=sys.stderr)
    return contender.python.exists()


def in_turns(
    present: list[Contender], servers: list[Server], rounds: int, seconds: float, loads: list[dict[str, Any]]
) -> list[Load]:
    """For each server the medians over rounds; `loads` has the arguments of `Server.load` for each."""
    found: list[list[Load]] = [[] for _ in present]
    for _ in tqdm(range(rounds), desc="rounds"):
        for contender, server, load, runs in zip(present, servers, loads, found, strict=True):
            with awake(server):
                runs.append(server.load(contender.request, seconds, **load))
    return [{key: statistics.median(run[key] for run in runs) for key in runs[0]} for runs in found]


@contextmanager
def stopped(server: Server) -> Iterator[None]:
    """Its processes use no CPU until they are woken or the block is left."""
    signal_all(server, signal.SIGSTOP)
    try:
        yield
    finally:
        signal_all(server, signal.SIGCONT)


@contextmanager
def awake(server: Server) -> Iterator[None]:
    signal_all(server, signal.SIGCONT)
    time.sleep(WAKE_SECONDS)
    try:
        yield
    finally:
        signal_all(server, signal.SIGSTOP)


def signal_all(server: Server, number: signal.Signals) -> None:
    for pid in family(server.pid):
        with suppress(ProcessLookupError):
            os.kill(pid, number)


@contextmanager
def up(contender: Contender, weights: Path) -> Iterator[Server]:
    """The server, warm and checked: it gives the same top label as the weights."""
    port = free_port()
    folder = weights / f"run-{port}"
    folder.mkdir()
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
            answers.append(asyncio.run(asyncio.wait_for(ask(port, contender.request), START_TIMEOUT_S)))
        return bool(answers)

    try:
        command = [str(contender.python), *contender.arguments]
        with started(command, port=port, environment=environment, ready=ready, folder=folder) as server:
            label = re.search(rb"class \d+", answers[0])
            expected = (weights / "label.txt").read_bytes()
            if not label or label[0] != expected:
                raise RuntimeError(f"{contender.name} answered {answers[0]!r}, but the top label is {expected!r}")
            server.load(contender.request, WARM_UP_SECONDS, connections=CONNECTIONS)
            yield server
    except RuntimeError as error:
        error.add_note((folder / "log").read_text()[-3000:])
        raise


def row(
    contender: Contender, closed: Load, own: Load, same: Load, *, ratio_to: float, common: float
) -> dict[str, str | float]:
    return {
        "server": contender.name,
        "runtime": contender.runtime,
        "images/s": round(closed["images_per_s"], 1),
        "ratio": round(closed["images_per_s"] / ratio_to, 2),
        f"p50 / p99, {CONNECTIONS} connections, ms": times(closed),
        f"p50 / p99 at {LOAD:.0%} of its own capacity, ms": times(own),
        f"p50 / p99 at {common:.1f} requests/s, ms": times(same),
        "failed": round(own["failed"] + same["failed"]),
        "CPU ms per image": round(1000 * closed["cpu_s"] / closed["images"]),
        "cores taken by others": round(closed["others"], 1),
    }


def times(found: Load) -> str:
    return f"{found['p50_ms']:.0f} / {found['p99_ms']:.0f}"
