"""Pre-trained and fine-tuned, or from scratch, with the same budget (paper, section 4.2)."""

from statistics import fmean

from tests.benchmarks.record import Rows
from tests.study.backbone import Backbone
from tests.study.experiment import Results, of, per_cent
from tests.study.run import Run
from tests.study.task import Task

RATES, SEEDS, LONGER = (1e-3, 3e-3), range(3), 4
STARTS = {
    "from scratch": Backbone(learned="nothing"),
    "after labels": Backbone(learned="labels"),
    "after masked patches": Backbone(learned="masked patches"),
}


def runs() -> list[Run]:
    return [
        run
        for name in [*STARTS, longer_name()]
        for rate in RATES
        for choosing in (True, False)
        for run in _runs(name, rate, choosing=choosing)
    ]


def longer_name() -> str:
    return f"from scratch, {LONGER} x the steps"


def _runs(name: str, rate: float, *, choosing: bool = False) -> list[Run]:
    """With every seed; the longer one has one, for it takes as long as the others together."""
    if name == longer_name():
        task = Task(rate=rate, steps=LONGER * Task.steps, choosing=choosing)
        return [Run(backbone=STARTS["from scratch"], task=task)]
    return [Run(backbone=STARTS[name], task=Task(rate=rate, seed=seed, choosing=choosing)) for seed in SEEDS]


def _best(results: Results, name: str) -> tuple[float, list[float]]:
    """The learning rate that is best for this start on images that judge nothing, and the accuracies with it."""
    rate = max(RATES, key=lambda rate: fmean(of(results, _runs(name, rate, choosing=True))))
    return rate, of(results, _runs(name, rate))


def rows(results: Results) -> Rows:
    table: Rows = []
    for name in [*STARTS, longer_name()]:
        rate, accuracies = _best(results, name)
        table.append({"start": name, "digits, %": per_cent(accuracies), "learning rate": rate})
    return table
