"""Few labels: masked patch prediction on images without labels, against nothing and against labels (appendix B.1.2)."""

from tests.study.backbone import Backbone
from tests.study.experiment import Grid
from tests.study.run import Run
from tests.study.task import Task

SEEDS, EACH = range(3), (10, 40, 160)
STARTS = {
    "nothing": Backbone(learned="nothing"),
    "masked patches": Backbone(learned="masked patches"),
    "labels": Backbone(learned="labels"),
}


def _runs(backbone: Backbone, each: int) -> list[Run]:
    return [Run(backbone=backbone, task=Task(images="shapes", each=each, seed=seed)) for seed in SEEDS]


EXPERIMENT = Grid(
    head="learned before",
    cells={name: {f"{each} of each": _runs(start, each) for each in EACH} for name, start in STARTS.items()},
)
