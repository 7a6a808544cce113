"""`python -m tests.load.soak [SECONDS]`: does the server grow, or get slower, while it is in use?

The real server with the demo model is under mixed traffic (`mixture.py`). Twice a second the script reads the memory
that its processes have allocated, its open files and its threads. Images in work come and go, so each window of time
counts with its lowest memory, and a line fitted to the windows after the first quarter gives the growth. The same is
done with a server that has a planted leak (`leaking.py`), which must be found. The table goes to docs/operations.md.
"""

import asyncio
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.benchmarks.__main__ import publish
from tests.benchmarks.load import percentile
from tests.benchmarks.record import Row
from tests.benchmarks.server import Server, family, running
from tests.load.background import repeated
from tests.load.mixture import Mixture
from tests.load.server import descriptors

SECONDS = 600.0
CONTROL_SECONDS = 120.0
WINDOWS = 12
WARM_UP = WINDOWS // 4
SAMPLE_EVERY_S = 0.5
GROWTH_MIB = 4.0  # the most by which a run may grow: 2 MiB an hour, if it lasts two hours
ERRORS = 3  # standard errors; a smaller slope does not count as growth
STORE_BYTES = 8 * 2**20  # full before the measurement begins


@dataclass(frozen=True, kw_only=True)
class Sample:
    when: float  # of time.monotonic, as are all moments here
    mib: float
    files: int
    threads: int


@dataclass(frozen=True, kw_only=True)
class Window:
    mib: float
    files: int
    threads: int
    requests: int
    p99_ms: float


@dataclass(frozen=True, kw_only=True)
class Soak:
    seconds: float
    windows: list[Window]
    traffic: Mixture

    @property
    def growth(self) -> tuple[float, float]:
        """MiB an hour, and its standard error."""
        levels = [window.mib for window in self.windows[WARM_UP:]]
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
        samples: list[Sample] = []
        start = time.monotonic()
        with repeated(lambda: samples.append(sample(server)), every_s=SAMPLE_EVERY_S):
            asyncio.run(traffic.run(start + seconds))
    return Soak(seconds=seconds, windows=windows(samples, traffic.latencies, start, seconds), traffic=traffic)


def sample(server: Server) -> Sample:
    """Of all processes of the server."""
    files = threads = 0
    for member in family(server.pid):
        with suppress(FileNotFoundError, ProcessLookupError):
            files += descriptors(member)
            threads += len(list(Path(f"/proc/{member}/task").iterdir()))
    return Sample(when=time.monotonic(), mib=server.anonymous_mib(), files=files, threads=threads)


def windows(samples: list[Sample], latencies: list[tuple[float, float]], start: float, seconds: float) -> list[Window]:
    parts = []
    for number in range(WINDOWS):
        begin, end = (start + seconds * n / WINDOWS for n in (number, number + 1))
        inside = [s for s in samples if begin <= s.when < end]
        times = [took for when, took in latencies if begin <= when < end]
        parts.append(
            Window(
                mib=min(s.mib for s in inside),
                files=min(s.files for s in inside),
                threads=min(s.threads for s in inside),
                requests=len(times),
                p99_ms=percentile(times, 0.99),
            )
        )
    return parts


def summary(name: str, run: Soak) -> Row:
    begin, end = run.windows[WARM_UP], run.windows[-1]
    counted = run.traffic.counted
    return {
        "run": name,
        "minutes": round(run.seconds / 60, 1),
        "answered": counted.total() - counted["left"],
        "clients that left": counted["left"],
        "wrong answers": run.traffic.wrong.total(),
        "memory, MiB": f"{begin.mib:.1f} to {end.mib:.1f}",
        "fitted growth, MiB/h": "{:.1f} ± {:.1f}".format(*run.growth),
        "fitted growth in all, MiB": round(run.growth_mib, 1),
        "open files": f"{begin.files} to {end.files}",
        "threads": f"{begin.threads} to {end.threads}",
        "p99, ms": f"{begin.p99_ms:.0f} to {end.p99_ms:.0f}",
        "leak": "found" if run.leaks else "none",
    }


def main() -> None:
    run = soak(float(sys.argv[1]) if sys.argv[1:] else SECONDS, module="app")
    control = soak(CONTROL_SECONDS, module="tests.load.leaking")
    rows = [summary("the service", run), summary("with a planted leak", control)]
    publish("soak", rows, Path(__file__).parent)
    if run.leaks or not control.leaks or run.traffic.wrong:
        raise SystemExit(f"wrong answers: {dict(run.traffic.wrong)}; leaks: {run.leaks}; control: {control.leaks}")


if __name__ == "__main__":
    main()
