"""Few-shot accuracy of a small and a larger network, by the number of images that they were pre-trained on (Fig. 4)."""

from model.config import ViTConfig
from tests.study.backbone import LARGE, SMALL, Backbone
from tests.study.experiment import Grid
from tests.study.run import Run
from tests.study.task import Task

COUNTS = (0, 60, 500, 4_000, 32_000)
SIZES = {"small": SMALL, "large": LARGE}
EACH, SEEDS = 10, range(5)


def _cells(name: str, config: ViTConfig, count: int) -> dict[str, list[Run]]:
    """At shapes, a network shows how right it is at what it was pre-trained for."""
    if count:
        start = Backbone(learned="labels", images=count, config=config)
        itself = [Run(backbone=start, task=Task(images="shapes", method="as it is"))]
    else:
        start, itself = Backbone(learned="nothing", config=config), []
    digits = [Run(backbone=start, task=Task(method="few-shot", each=EACH, seed=seed)) for seed in SEEDS]
    return {f"{name} network: shapes": itself, f"{name} network: digits": digits}


EXPERIMENT = Grid(
    head="images of pre-training",
    cells={
        f"{count:,}": {
            column: runs for name, config in SIZES.items() for column, runs in _cells(name, config, count).items()
        }
        for count in COUNTS
    },
)
