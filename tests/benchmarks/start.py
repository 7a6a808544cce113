"""`python -m tests.benchmarks.start CHECKOUT=BUNDLE...`: start to ready of several versions of the service, in turn.

Each is a checkout of this repository and a bundle that it can serve, such as `.=bundles/b16 ../before=bundles/b16-old`.
The first start of each is not counted: it reads files that are not yet in the cache.
"""

import os
import statistics
import sys
import tempfile
from functools import partial
from pathlib import Path

from tests.benchmarks.page import table
from tests.benchmarks.server import free_port, is_ready, started

ROUNDS = 13


def main(versions: list[str]) -> None:
    wall: dict[str, list[float]] = {version: [] for version in versions}
    cpu: dict[str, list[float]] = {version: [] for version in versions}
    for _ in range(1 + ROUNDS):
        for version in versions:
            seconds, cpu_seconds = start(*map(Path, version.split("=")))
            wall[version].append(seconds)
            cpu[version].append(cpu_seconds)
    rows: list[dict[str, str | float]] = []
    for version in versions:
        counted, of_cpu = wall[version][1:], cpu[version][1:]
        rows.append({
            "version": version,
            "start to ready, s": round(statistics.median(counted), 3),
            "from": round(min(counted), 3),
            "to": round(max(counted), 3),
            "of a core, s": round(statistics.median(of_cpu), 3),
            "relative": round(statistics.median(counted) / statistics.median(wall[versions[0]][1:]), 3),
        })  # fmt: skip
    print(table(rows))


def start(checkout: Path, bundle: Path) -> tuple[float, float]:
    """Seconds from start to ready, and those of a core that were used until then."""
    port = free_port()
    environment = {
        "PYTHONPATH": str(checkout.resolve()),
        "VIT_BUNDLE": str(bundle.resolve()),
        "VIT_PORT": str(port),
        "VIT_DEVICE": os.environ.get("VIT_DEVICE", "cpu"),
        "VIT_LOG_LEVEL": "error",
        "VIT_DRAIN_DELAY_S": "0",
    }
    command, ready = [sys.executable, "-m", "app"], partial(is_ready, port)
    with (
        tempfile.TemporaryDirectory() as elsewhere,  # else this checkout would come before the other in Python's path
        started(command, port=port, environment=environment, ready=ready, folder=Path(elsewhere)) as server,
    ):
        return server.seconds_to_ready, server.cpu_seconds()


if __name__ == "__main__":
    main(sys.argv[1:])
