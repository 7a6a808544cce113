"""Fine-tuning at a higher resolution than that of pre-training (paper, section 3.2)."""

from dataclasses import replace

from tests.study.backbone import SIDE, Backbone
from tests.study.experiment import Grid
from tests.study.run import Run
from tests.study.task import Task

SIDES, SEEDS = (SIDE, SIDE * 3 // 2), range(3)
TASKS = {
    "digits, 20 images of each": Task(each=20),
    "shapes, 40 images of each": Task(images="shapes", each=40),
}


def _runs(task: Task, side: int) -> list[Run]:
    return [Run(backbone=Backbone(learned="labels"), task=replace(task, side=side, seed=seed)) for seed in SEEDS]


EXPERIMENT = Grid(
    head="images",
    cells={name: {f"{side} pixels": _runs(task, side) for side in SIDES} for name, task in TASKS.items()},
)
