"""What an experiment of the study consists of."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Protocol

from tests.benchmarks.record import Rows
from tests.study.run import Run

Results = Mapping[Run, float]


class Experiment(Protocol):
    """A module of this package."""

    def runs(self) -> Sequence[Run]:
        """Every run that it needs."""

    def rows(self, results: Results) -> Rows:
        """Its table."""


def of(results: Results, runs: Iterable[Run]) -> list[float]:
    return [results[run] for run in runs]


def per_cent(accuracies: Sequence[float]) -> str:
    """The mean, and the range of several runs."""
    shares = [100 * accuracy for accuracy in accuracies]
    if len(shares) == 1:
        return f"{shares[0]:.1f}"
    return f"{fmean(shares):.1f} ({min(shares):.1f} to {max(shares):.1f})"
