"""How a network knows where a patch was (paper, appendix D.4, Table 8)."""

from model.fit.pretrain import POSITIONS
from tests.study.backbone import SMALL, Backbone
from tests.study.experiment import Grid
from tests.study.run import Run
from tests.study.task import Task

SEEDS = range(3)
TASKS = {
    "shapes": Task(images="shapes", method="as it is"),
    "digits, 10 images of each": Task(method="few-shot", each=10),
}


def _runs(positions: str, task: Task) -> list[Run]:
    starts = [Backbone(learned="labels", config=SMALL, positions=positions, seed=seed) for seed in SEEDS]
    return [Run(backbone=start, task=task) for start in starts]


EXPERIMENT = Grid(
    head="positions",
    cells={positions: {name: _runs(positions, task) for name, task in TASKS.items()} for positions in POSITIONS},
)
