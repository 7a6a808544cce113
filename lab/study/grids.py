"""The experiments whose cells are the accuracy of a few runs each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from lab.benchmarks.record import Row, Rows
from lab.study.backbone import LARGE, SIDE, SMALL, Backbone
from lab.study.run import Run
from lab.study.task import Task
from model.config import ViTConfig
from model.variants import POSITIONS

Results = Mapping[Run, float]
FEW_SHOT = Task(method="few-shot", each=10)  # digits
SHAPES = Task(images="shapes", method="as it is")  # how right a network is at what it was pre-trained for


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


def growth() -> Grid:
    """Few-shot accuracy of a small and a larger network, by the number of images of their pre-training (Fig. 4)."""

    def cells(name: str, config: ViTConfig, count: int) -> dict[str, list[Run]]:
        learned = Backbone(learned="labels", images=count, config=config)
        start = learned if count else Backbone(learned="nothing", config=config)
        digits = [Run(backbone=start, task=replace(FEW_SHOT, seed=seed)) for seed in range(5)]
        itself = [Run(backbone=start, task=SHAPES)] if count else []
        return {f"{name} network: shapes": itself, f"{name} network: digits": digits}

    counts = (0, 60, 500, 4_000, 32_000)
    rows = {f"{count:,}": cells("small", SMALL, count) | cells("large", LARGE, count) for count in counts}
    return Grid(head="images of pre-training", cells=rows)


def positions() -> Grid:
    """How a network knows where a patch was (appendix D.4, Table 8)."""

    def runs(positions: str, task: Task) -> list[Run]:
        starts = [Backbone(learned="labels", config=SMALL, positions=positions, seed=seed) for seed in range(3)]
        return [Run(backbone=start, task=task) for start in starts]

    tasks = {"shapes": SHAPES, "digits, 10 images of each": FEW_SHOT}
    cells = {kind: {name: runs(kind, task) for name, task in tasks.items()} for kind in POSITIONS}
    return Grid(head="positions", cells=cells)


def unlabelled() -> Grid:
    """Few labels: masked patch prediction on images without labels, against nothing and against labels (B.1.2)."""

    def runs(start: Backbone, each: int) -> list[Run]:
        return [Run(backbone=start, task=Task(images="shapes", each=each, seed=seed)) for seed in range(3)]

    starts = [Backbone(learned="nothing"), Backbone(learned="masked patches"), Backbone(learned="labels")]
    cells = {str(start.learned): {f"{each} of each": runs(start, each) for each in (10, 40, 160)} for start in starts}
    return Grid(head="learned before", cells=cells)


def resolution() -> Grid:
    """Fine-tuning at a higher resolution than that of pre-training (section 3.2)."""

    def runs(task: Task, side: int) -> list[Run]:
        return [Run(backbone=Backbone(learned="labels"), task=replace(task, side=side, seed=seed)) for seed in range(3)]

    tasks = {"digits, 20 images of each": Task(each=20), "shapes, 40 images of each": Task(images="shapes", each=40)}
    sides = (SIDE, SIDE * 3 // 2)
    cells = {name: {f"{side} pixels": runs(task, side) for side in sides} for name, task in tasks.items()}
    return Grid(head="images", cells=cells)
