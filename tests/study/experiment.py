"""What an experiment of the study consists of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Protocol

from tests.benchmarks.record import Row, Rows
from tests.study.run import Run

Results = Mapping[Run, float]


class Experiment(Protocol):
    def runs(self) -> Sequence[Run]:
        """Every run that it needs."""

    def rows(self, results: Results) -> Rows:
        """Its table."""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """An experiment whose cells have the accuracy of a few runs each; a cell without runs is empty."""

    head: str  # of the first column
    cells: Mapping[str, Mapping[str, Sequence[Run]]]  # by row and column

    def runs(self) -> list[Run]:
        return [run for row in self.cells.values() for runs in row.values() for run in runs]

    def rows(self, results: Results) -> Rows:
        def shown(row: Mapping[str, Sequence[Run]]) -> Row:
            return {f"{column}, %": per_cent([results[run] for run in runs]) for column, runs in row.items()}

        return [{self.head: name, **shown(row)} for name, row in self.cells.items()]


def per_cent(accuracies: Sequence[float]) -> str:
    """The mean, and the range of several runs."""
    shares = [100 * accuracy for accuracy in accuracies]
    if len(shares) > 1:
        return f"{fmean(shares):.1f} ({min(shares):.1f} to {max(shares):.1f})"
    return "".join(f"{share:.1f}" for share in shares)
