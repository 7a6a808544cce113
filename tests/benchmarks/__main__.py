"""`python -m tests.benchmarks [graphs] [serving] [memory] ...`: measure, and write the JSON and the tables.

Timings on a shared machine are noisy, so variants run interleaved, and tables have medians and ratios.
"""

import sys
from pathlib import Path

from tests.benchmarks import (
    arrangements,
    cost,
    doors,
    drawing,
    engines,
    exporting,
    hop,
    intake,
    memory,
    observation,
    overhead,
    precision,
    serving,
)
from tests.benchmarks.decoding import comparison as decoding
from tests.benchmarks.figures import fill
from tests.benchmarks.learning import chance
from tests.benchmarks.learning import comparison as learning
from tests.benchmarks.maps import comparison as maps
from tests.benchmarks.page import PAGES, README, table, write_block
from tests.benchmarks.record import Head, Rows, write_record
from tests.benchmarks.runtimes import comparison as runtimes
from tests.benchmarks.sentences import BLOCKS
from tests.benchmarks.training import comparison as training

BENCHMARKS = {
    "graphs": runtimes.measure,
    "serving": serving.measure,
    "engines": engines.measure,
    "overhead": overhead.measure,
    "observation": observation.measure,
    "decoding": decoding.measure,
    "intake": intake.measure,
    "hop": hop.measure,
    "doors": doors.measure,
    "cost": cost.measure,
    "arrangements": arrangements.measure,
    "memory": memory.measure,
    "drawing": drawing.measure,
    "exporting": exporting.measure,
    "maps": maps.measure,
    "precision": precision.measure,
    "training": training.measure,
    "learning": learning.measure,
    "chance": chance.measure,
}
FOLDER = Path(__file__).parent


def main() -> None:
    for name in sys.argv[1:] or BENCHMARKS:
        publish(name, BENCHMARKS[name](), FOLDER)


def publish(name: str, rows: Rows, folder: Path, more: Head | None = None) -> None:
    """Write NAME.json into `folder`, print the table, and write it and what is said of it into the pages.

    `more` is what else the record says.
    """
    write_record(folder / f"{name}.json", rows, more)
    print(table(rows))
    if not write_block(name, table(rows), PAGES):
        raise SystemExit(f"no page has a place for the table {name}")
    for of_block, text in BLOCKS.items():
        write_block(of_block, text(), [README, *PAGES])
    for page in [README, *PAGES]:
        page.write_text(fill(page.read_text()))


if __name__ == "__main__":
    main()
