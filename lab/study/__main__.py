"""`python -m lab.study [transfer] [growth] ...`: the paper in miniature, the tables of lab/study/README.md.

What is learned lies in study.work/ until all of it is done, so that a run that was interrupted goes on.
"""

import shutil
import sys
from collections.abc import Sequence
from typing import Protocol

from lab.benchmarks.__main__ import publish
from lab.benchmarks.record import ROOT, Rows
from lab.study import grids, transfer
from lab.study.grids import Results
from lab.study.run import Run, accuracies


class Experiment(Protocol):
    def runs(self) -> Sequence[Run]:
        """Every run that it needs."""

    def rows(self, results: Results) -> Rows:
        """Its table."""


EXPERIMENTS: dict[str, Experiment] = {
    "transfer": transfer,
    "growth": grids.growth(),
    "positions": grids.positions(),
    "unlabelled": grids.unlabelled(),
    "resolution": grids.resolution(),
}
WORK = ROOT / "study.work"


def main() -> None:
    chosen = {name: EXPERIMENTS[name] for name in sys.argv[1:] or EXPERIMENTS}
    WORK.mkdir(exist_ok=True)
    runs = dict.fromkeys(run for experiment in chosen.values() for run in experiment.runs())
    results = accuracies(list(runs), WORK)
    for name, experiment in chosen.items():
        publish(f"study-{name}", experiment.rows(results))
    shutil.rmtree(WORK)


if __name__ == "__main__":
    main()
