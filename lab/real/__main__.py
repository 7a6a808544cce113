"""`python -m lab.real [precision] [maps] ...`: a trained network and real photographs, and the tables of docs/.

Where they disagree with those of the demo, believe these. It needs pip, apt-get and dpkg, and their registries.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from lab.benchmarks.__main__ import publish
from lab.benchmarks.record import Rows
from lab.real import (
    calibration,
    copies,
    defects,
    doubt,
    intake,
    judge,
    maps,
    precision,
    spread,
    stamps,
    textiles,
    uneven,
    unknown,
)  # fmt: skip
from lab.real.data import Data, make

EXPERIMENTS: dict[str, Callable[[Data], Rows]] = {
    "precision": precision.measure,
    "maps": maps.measure,
    "judge": judge.measure,
    "defects": defects.measure,
    "intake": intake.measure,
    "calibration": calibration.measure,
    "doubt": doubt.measure,
    "copies": copies.measure,
    "uneven": uneven.measure,
    "unknown": unknown.measure,
    "textiles": textiles.measure,
    "spread": spread.measure_spread,
    "stamps": stamps.measure,
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        data = make(Path(folder))
        for name in sys.argv[1:] or EXPERIMENTS:
            publish(f"real-{name}", EXPERIMENTS[name](data))


if __name__ == "__main__":
    main()
