"""`python -m lab.load.soak [SECONDS]`: does the server grow, or get slower, while it is in use?

Images in work come and go, so each window of time counts with its lowest memory, and a line fitted to the windows after
the first quarter gives the growth. The same is done with a server that has a planted leak, which must be found.
The table goes to lab/load/README.md.
"""

import asyncio
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from lab.benchmarks.__main__ import publish
from lab.benchmarks.load import percentile
from lab.benchmarks.record import Row
from lab.load.background import repeated
from lab.load.mixture import Mixture
from lab.load.server import descriptors
from tests.support.server import Server, family, running

SECONDS = 600.0
CONTROL_SECONDS = 120.0
WINDOWS = 12
WARM_UP = WINDOWS // 4
SAMPLE_EVERY_S = 0.5
GROWTH_MIB = 4.0  # the most by which a run may grow: 2 MiB an hour, if it lasts two hours
ERRORS = 3  # standard errors; a smaller slope does not count as growth
STORE_BYTES = 8 * 2**20  # full before the measurement begins
Value = TypeVar("Value")


class Soak(NamedTuple):
    seconds: float
    lowest: np.ndarray  # (WINDOWS, 3): MiB, open files and threads
    p99_ms: list[float]  # by window
    traffic: Mixture

    @property
    def growth(self) -> tuple[float, float]:
        """MiB an hour, and its standard error."""
        levels = self.lowest[WARM_UP:, 0]
        hours = np.arange(len(levels)) * self.seconds / WINDOWS / 3600
        (slope, _), covariance = np.polyfit(hours, levels, 1, cov=True)
        return float(slope), float(np.sqrt(covariance[0, 0]))

    @property
    def growth_mib(self) -> float:
        """Along the fitted line, in all."""
        return self.growth[0] * self.seconds / 3600 * (WINDOWS - WARM_UP) / WINDOWS

    @property
    def leaks(self) -> bool:
        slope, error = self.growth
        return self.growth_mib > GROWTH_MIB and slope > ERRORS * error


def soak(seconds: float, *, module: str) -> Soak:
    with running(module=module, store_max_bytes=STORE_BYTES) as server:
        traffic = Mixture(server.port)
        samples: list[tuple[float, tuple[float, int, int]]] = []
        start = time.monotonic()
        with repeated(lambda: samples.append((time.monotonic(), held(server))), every_s=SAMPLE_EVERY_S):
            asyncio.run(traffic.run(start + seconds))
    lowest = np.array([np.min(window, axis=0) for window in windows(samples, start, seconds)])
    p99_ms = [1000 * percentile(window, 0.99) for window in windows(traffic.latencies, start, seconds)]
    return Soak(seconds, lowest, p99_ms, traffic)


def windows(timed: list[tuple[float, Value]], start: float, seconds: float) -> list[list[Value]]:
    """The values of each window, by their moments of time.monotonic."""
    places = [(int(WINDOWS * (when - start) / seconds), value) for when, value in timed]
    return [[value for place, value in places if place == window] for window in range(WINDOWS)]


def held(server: Server) -> tuple[float, int, int]:
    """MiB, open files and threads of all processes of the server."""
    files = threads = 0
    for member in family(server.pid):
        with suppress(FileNotFoundError, ProcessLookupError):
            files += descriptors(member)
            threads += len(list(Path(f"/proc/{member}/task").iterdir()))
    return server.anonymous_mib(), files, threads


def summary(name: str, run: Soak) -> Row:
    (mib, files, threads), (last_mib, last_files, last_threads) = run.lowest[[WARM_UP, -1]]
    counted = run.traffic.counted
    return {
        "run": name,
        "minutes": round(run.seconds / 60, 1),
        "answered": counted.total() - counted["left"],
        "clients that left": counted["left"],
        "wrong answers": run.traffic.wrong.total(),
        "memory, MiB": f"{mib:.1f} to {last_mib:.1f}",
        "fitted growth, MiB/h": "{:.1f} ± {:.1f}".format(*run.growth),
        "fitted growth in all, MiB": round(run.growth_mib, 1),
        "open files": f"{files:.0f} to {last_files:.0f}",
        "threads": f"{threads:.0f} to {last_threads:.0f}",
        "p99, ms": f"{run.p99_ms[WARM_UP]:.0f} to {run.p99_ms[-1]:.0f}",
        "leak": "found" if run.leaks else "none",
    }


def main() -> None:
    run = soak(float(sys.argv[1]) if sys.argv[1:] else SECONDS, module="app")
    control = soak(CONTROL_SECONDS, module="lab.load.leaking")
    publish("soak", [summary("the service", run), summary("with a planted leak", control)])
    if run.leaks or not control.leaks or run.traffic.wrong:
        raise SystemExit(f"wrong answers: {dict(run.traffic.wrong)}; leaks: {run.leaks}; control: {control.leaks}")


if __name__ == "__main__":
    main()
