"""The report of a run as one HTML page that holds its charts and images and needs nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from export.fit.dataset import Dataset
from export.fit.report.chart import Chart
from export.fit.report.confusion import mistaken_pairs
from export.fit.report.judged import Judged, percent
from export.fit.report.mistakes import Mistake, picture
from export.fit.report.suspects import Suspect
from export.html import render
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.describe import flat
from model.fit.fitted import Point

TEMPLATE = Path(__file__).with_name("page.html")
MOST_LABELS = 200  # of the table
FIGURES = {  # in words; all are shares, but for numbers of images and the loss
    "train_images": "images that were learned from",
    "held_out_images": "held-out images",
    "top1_accuracy": "accuracy: the answer is the right label",
    "top1_low": "accuracy, lower end of the 95 % interval",
    "top1_high": "accuracy, upper end of the 95 % interval",
    "top5_accuracy": "the right label is among the five likeliest",
    "balanced_accuracy": "balanced accuracy: the mean recall of all labels",
    "colour_accuracy": "hidden patches that got the right colour",
    "loss": "loss (cross-entropy)",
    "calibration_error": "calibration error of the scores",
    "left_out_accuracy": "accuracy on the images that were learned from, each left out in turn with its near-copies",
}


@dataclass(frozen=True, kw_only=True)
class Report:
    checkpoint: Checkpoint  # what was learned
    folder: Path  # of the report
    following: str  # the command that comes next
    history: Sequence[Point]
    dataset: Dataset
    judged: Judged | None  # None where there are no labels
    suspects: Sequence[Suspect] | None  # None where no head has left images out
    headline: str
    origin: str  # a sentence on where it comes from
    notes: Sequence[str]  # sentences on the images

    @property
    def counts(self) -> list[int]:
        return [*self.dataset.count(self.dataset.train).values()]


@dataclass(frozen=True, kw_only=True)
class Pictures:
    mistakes: Sequence[Mistake]
    suspicious: Sequence[bytes]  # of the first suspects
    copies: Sequence[tuple[Sequence[Path], Sequence[bytes]]]  # two of each of the largest groups


def page(report: Report, charts: Sequence[Chart], pictures: Pictures) -> str:
    judged, found, recipe = report.judged, report.checkpoint.figures, dict(report.checkpoint.recipe)
    tried = recipe.pop("tried", {})
    return render(
        TEMPLATE,
        report=report,
        charts=charts,
        labels=_labels(judged, report.counts) if judged else [],
        most=MOST_LABELS,
        pairs=mistaken_pairs(judged) if judged else [],
        mistakes=pictures.mistakes,
        picture=picture,
        suspicious=pictures.suspicious,
        copies=pictures.copies,
        percent=percent,
        tried=[(name, percent(of["accuracy"]), f"{of['loss']:.3g}") for name, of in tried.items()],
        figures=[(words, _figure(name, found[name])) for name, words in FIGURES.items() if name in found],
        settings=[(name, _setting(value)) for name, value in flat(recipe).items()],
    )


def _labels(judged: Judged, counts: Sequence[int]) -> list[tuple[str, int, int, str, str]]:
    """Rows of the table. The labels that are found least often come first."""
    numbers = sorted(
        zip(judged.by_label(), counts, strict=True), key=lambda pair: (pair[0]["recall"] is None, pair[0]["recall"])
    )
    return [
        (of["label"], count, of["images"], percent(of["recall"]), percent(of["precision"])) for of, count in numbers
    ]


def _figure(name: str, figure: float) -> str:
    if name.endswith("images"):
        return f"{figure:,.0f}"
    return f"{figure:.4g}" if name == "loss" else percent(figure)


def _setting(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)
