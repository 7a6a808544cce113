"""`python -m lab.real [precision] [maps] ...`: a trained network and real photographs, and the tables of docs/.

Where they disagree with those of the demo, believe these. It needs pip, apt-get and dpkg, and their registries.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from lab.benchmarks.page import write_pages
from lab.benchmarks.record import Rows, write_record
from lab.benchmarks.rounds import table
from lab.real import calibration, doubt, intake, maps, precision, unknown
from lab.real.data import Data, make

EXPERIMENTS: dict[str, Callable[[Data], Rows]] = {
    "precision": precision.measure,
    "maps": maps.measure,
    "intake": intake.measure,
    "calibration": calibration.measure,
    "doubt": doubt.measure,
    "unknown": unknown.measure,
}
FOLDER = Path(__file__).parent


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        data = make(Path(folder))
        for name in sys.argv[1:] or EXPERIMENTS:
            rows = EXPERIMENTS[name](data)
            write_record(FOLDER / f"real-{name}.json", rows)
            print(table(rows))
            write_pages()


if __name__ == "__main__":
    main()
