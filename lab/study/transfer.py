"""Pre-trained and fine-tuned, or from scratch, with the same budget (paper, section 4.2)."""

from dataclasses import replace
from itertools import product
from statistics import fmean

from lab.benchmarks.record import Row, Rows
from lab.study.backbone import Backbone
from lab.study.grids import Results, per_cent
from lab.study.run import Run
from lab.study.task import Task

RATES, LONGER = (1e-3, 3e-3), 4
SCRATCH = Backbone(learned="nothing")
SEEDS = [Task(seed=seed) for seed in range(3)]
STARTS: dict[str, tuple[Backbone, list[Task]]] = {
    "from scratch": (SCRATCH, SEEDS),
    "after labels": (Backbone(learned="labels"), SEEDS),
    "after masked patches": (Backbone(learned="masked patches"), SEEDS),
    # with one seed, for it takes as long as the others together
    f"from scratch, {LONGER} x the steps": (SCRATCH, [Task(steps=LONGER * Task.steps)]),
}


def runs() -> list[Run]:
    settings = product(STARTS, RATES, (True, False))
    return [run for name, rate, choosing in settings for run in _runs(name, rate, choosing)]


def rows(results: Results) -> Rows:
    return [{"start": name, **_best(results, name)} for name in STARTS]


def _runs(name: str, rate: float, choosing: bool) -> list[Run]:
    start, tasks = STARTS[name]
    return [Run(backbone=start, task=replace(task, rate=rate, choosing=choosing)) for task in tasks]


def _best(results: Results, name: str) -> Row:
    """With the learning rate that is best for this start on images that judge nothing."""

    def accuracies(rate: float, choosing: bool) -> list[float]:
        return [results[run] for run in _runs(name, rate, choosing)]

    rate = max(RATES, key=lambda rate: fmean(accuracies(rate, True)))
    return {"digits, %": per_cent(accuracies(rate, False)), "learning rate": rate}
