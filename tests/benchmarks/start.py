"""`python -m tests.benchmarks.start CHECKOUT=BUNDLE...`: start to ready of several versions of the service, in turn.

Each is a checkout of this repository and a bundle that it can serve, such as `.=bundles/b16 ../before=bundles/b16-old`.
Each starts with the default device, as `make serve` does, and with `VIT_DEVICE=cpu`. The first start of each is not
counted: it reads files that are not yet in the cache.
"""

import statistics
import sys
import tempfile
from pathlib import Path

from app.settings import Settings
from tests.benchmarks.page import table
from tests.benchmarks.record import Rows
from tests.benchmarks.server import running

ROUNDS = 13
DEVICES = (Settings.model_fields["device"].default, "cpu")


def compare(versions: dict[str, tuple[Path, Path]]) -> Rows:
    """By name, each a checkout and a bundle."""
    wall: dict[tuple[str, str], list[float]] = {(name, device): [] for name in versions for device in DEVICES}
    cpu: dict[tuple[str, str], list[float]] = {key: [] for key in wall}
    for _ in range(1 + ROUNDS):
        for name, device in wall:
            seconds, cpu_seconds = start(*versions[name], device)
            wall[name, device].append(seconds)
            cpu[name, device].append(cpu_seconds)
    rows: Rows = []
    for (name, device), (_, *counted) in wall.items():
        rows.append({
            "version": name,
            "VIT_DEVICE": device,
            "start to ready, s": round(statistics.median(counted), 2),
            "from": round(min(counted), 2),
            "to": round(max(counted), 2),
            "of a core, s": round(statistics.median(cpu[name, device][1:]), 2),
            "to that with cpu": round(statistics.median(counted) / statistics.median(wall[name, "cpu"][1:]), 2),
        })  # fmt: skip
    return rows


def start(checkout: Path, bundle: Path, device: str) -> tuple[float, float]:
    """Seconds from start to ready, and those of a core that were used until then."""
    variables = {"PYTHONPATH": str(checkout.resolve()), "VIT_DEVICE": device, "VIT_LOG_LEVEL": "error"}
    with (
        tempfile.TemporaryDirectory() as elsewhere,  # else this checkout would come before the other in Python's path
        running(bundle.resolve(), variables, folder=Path(elsewhere)) as server,
    ):
        return server.seconds_to_ready, server.cpu_seconds()


if __name__ == "__main__":
    pairs = {version: version.split("=") for version in sys.argv[1:]}
    print(table(compare({version: (Path(checkout), Path(bundle)) for version, (checkout, bundle) in pairs.items()})))
