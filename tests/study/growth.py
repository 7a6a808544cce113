"""Few-shot accuracy of a small and a larger network, by the number of images that they were pre-trained on (Fig. 4)."""

from model.config import ViTConfig
from tests.benchmarks.record import Row, Rows
from tests.study.backbone import LARGE, SMALL, Backbone
from tests.study.experiment import Results, of, per_cent
from tests.study.run import Run
from tests.study.task import Task

COUNTS = (60, 500, 4_000, 32_000)
SIZES = {"small": SMALL, "large": LARGE}
EACH, SEEDS = 10, range(5)


def runs() -> list[Run]:
    return [run for config in SIZES.values() for start in _starts(config) for run in [*_runs(start), *_itself(start)]]


def _starts(config: ViTConfig) -> list[Backbone]:
    """None, then more and more images."""
    return [
        Backbone(learned="nothing", config=config),
        *(Backbone(learned="labels", images=count, config=config) for count in COUNTS),
    ]


def _runs(backbone: Backbone) -> list[Run]:
    return [Run(backbone=backbone, task=Task(method="few-shot", each=EACH, seed=seed)) for seed in SEEDS]


def _itself(backbone: Backbone) -> list[Run]:
    """How right it is at what it was pre-trained for."""
    if backbone.learned == "nothing":
        return []
    return [Run(backbone=backbone, task=Task(images="shapes", method="as it is"))]


def rows(results: Results) -> Rows:
    starts = {name: _starts(config) for name, config in SIZES.items()}
    table: Rows = []
    for number, count in enumerate((0, *COUNTS)):
        row: Row = {"images of pre-training": f"{count:,}"}
        for name in SIZES:
            start = starts[name][number]
            row[f"{name} network: shapes, %"] = per_cent(of(results, _itself(start))) if count else ""
            row[f"{name} network: digits, %"] = per_cent(of(results, _runs(start)))
        table.append(row)
    return table
