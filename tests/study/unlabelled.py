"""Few labels: masked patch prediction on images without labels, against nothing and against labels (appendix B.1.2)."""

from tests.benchmarks.record import Rows
from tests.study.backbone import Backbone
from tests.study.experiment import Results, of, per_cent
from tests.study.run import Run
from tests.study.task import Task

SEEDS, EACH = range(3), (10, 40, 160)
STARTS = {
    "nothing": Backbone(learned="nothing"),
    "masked patches": Backbone(learned="masked patches"),
    "labels": Backbone(learned="labels"),
}


def runs() -> list[Run]:
    return [run for start in STARTS.values() for each in EACH for run in _runs(start, each)]


def _runs(backbone: Backbone, each: int) -> list[Run]:
    return [Run(backbone=backbone, task=Task(images="shapes", each=each, seed=seed)) for seed in SEEDS]


def rows(results: Results) -> Rows:
    return [
        {
            "learned before": name,
            **{f"{each} of each, %": per_cent(of(results, _runs(start, each))) for each in EACH},
        }
        for name, start in STARTS.items()
    ]
