"""The report of a run as one HTML page that holds its charts and images and needs nothing else."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from export.fit.dataset import Dataset
from export.fit.report.chart import Chart
from export.fit.report.confusion import mistaken_pairs
from export.fit.report.judged import Judged, percent
from export.fit.report.mistakes import Mistake, picture
from export.fit.split import LeftOut
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
    "left_out_accuracy": "accuracy on the images that were learned from, each left out in turn",
}
PAIRS = ("right label", "answer", "images", "of")  # heads of the table of mistakes
MAPS = (
    "Each image is followed by the evidence and by the rollout. Evidence: what each patch adds to the logit of the "
    "answer less what it adds to that of the right label; red speaks for the answer, blue for the right label. "
    "Rollout: how strongly each patch is attended to, through all layers. A click opens them larger."
)


@dataclass(frozen=True, kw_only=True)
class Report:
    checkpoint: Checkpoint  # what was learned
    images: Path  # a folder or a CSV
    folder: Path  # of the report
    following: str  # the command that comes next
    history: Sequence[Point]
    dataset: Dataset
    judged: Judged | None  # None where there are no labels
    headline: str
    notes: Sequence[str]  # sentences on the images
    left_out: Sequence[LeftOut]

    @cached_property
    def origin(self) -> str:
        recipe, now = self.checkpoint.recipe, datetime.now().astimezone()
        return (
            f"Learned by the method {recipe['method']} from {recipe['checkpoint']} and the images in {self.images}, on "
            f"{now:%Y-%m-%d} at {now:%H:%M}."
        )

    @property
    def counts(self) -> list[int]:
        return [*self.dataset.count(self.dataset.train).values()]


def page(report: Report, charts: Sequence[Chart], mistakes: Sequence[Mistake]) -> str:
    checkpoint, judged, found = report.checkpoint, report.judged, report.checkpoint.figures
    tried = checkpoint.recipe.get("tried")
    recipe = {name: value for name, value in checkpoint.recipe.items() if name != "tried"}
    settings = [(name, _setting(value)) for name, value in flat(recipe).items()]
    figures = [(words, _value(name, found[name])) for name, words in FIGURES.items() if name in found]
    pairs = mistaken_pairs(judged) if judged else []
    parts = [
        f'<p class="headline">{_text(report.headline)}</p>',
        f'<p class="note">{_text(report.origin)}</p>',
        f"<p>Next: <code>{_text(report.following)}</code></p>",
        f"<ul>{''.join(f'<li>{_text(note)}</li>' for note in report.notes)}</ul>",
        *map(_figure, charts),
        _labels(judged, report.counts) if judged else "",
        _section("Commonest mistakes", _table(PAIRS, pairs, texts=2)) if pairs else "",
        _mistakes(judged, mistakes) if judged else "",
        _section("Learning rates that were tried", _tried(tried)) if tried else "",
        _section("Figures", _table((), figures, texts=1)),
        _section("Recipe", _table((), settings, texts=2)),
    ]
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        name=escape(checkpoint.name), content="\n".join(parts)
    )


def _section(title: str, *content: str) -> str:
    return "\n".join((f"<h2>{title}</h2>", *content))


def _text(value: Any) -> str:
    """As HTML; a number stays on one line with its %."""
    return escape(str(value)).replace(" %", "\N{NO-BREAK SPACE}%")


def _figure(chart: Chart) -> str:
    kind = "wide" if chart.name == "confusion" else "fits"
    caption = f"<figcaption>{_text(chart.caption)}</figcaption>"
    return _section(chart.title, f'<figure><div class="{kind}">{chart.svg}</div>{caption}</figure>')


def _labels(judged: Judged, counts: Sequence[int]) -> str:
    """The labels that are found least often first."""
    numbers = sorted(
        zip(judged.by_label(), counts, strict=True), key=lambda pair: (pair[0]["recall"] is None, pair[0]["recall"])
    )
    rows = [
        (of["label"], count, of["images"], percent(of["recall"]), percent(of["precision"]))
        for of, count in numbers[:MOST_LABELS]
    ]
    note = "Recall: the share of a label's images that got it. Precision: how often the answer is right."
    more = f" The {MOST_LABELS} labels of the lowest recall are shown." if len(numbers) > MOST_LABELS else ""
    table = _table(("label", "learned from", "held out", "recall", "precision"), rows, texts=1)
    return _section("Labels", f'<p class="note">{note}{more}</p>', table)


def _mistakes(judged: Judged, mistakes: Sequence[Mistake]) -> str:
    title = "Most confident mistakes"
    if not mistakes:
        return _section(title, f"<p>All {len(judged.files):,} held-out images got the right label.</p>")
    figures = (_mistake(number, mistake) for number, mistake in enumerate(mistakes, 1))
    return _section(title, f'<p class="note">{MAPS}</p>', '<div class="mistakes">', *figures, "</div>")


def _mistake(number: int, mistake: Mistake) -> str:
    text = _text(
        f"{mistake.answer} ({percent(mistake.answer_score)}) in place of {mistake.right} "
        f"({percent(mistake.right_score)})"
    )
    image = f'<img alt="{text}" src="data:image/png;base64,{b64encode(mistake.png).decode()}">'
    return (
        f'<figure><a href="{picture(number)}">{image}</a><figcaption>{text}<br>'
        f'<span class="file">{_text(mistake.file)}</span></figcaption></figure>'
    )


def _tried(tried: dict[str, dict[str, float]]) -> str:
    rows = [(name, percent(found["accuracy"]), f"{found['loss']:.3g}") for name, found in tried.items()]
    note = "Each learned from four fifths of the images to learn from, and was judged by the rest."
    return f'<p class="note">{note}</p>\n{_table(("rate", "accuracy", "loss"), rows, texts=1)}'


def _value(name: str, figure: float) -> str:
    if name.endswith("images"):
        return f"{figure:,.0f}"
    return f"{figure:.4g}" if name == "loss" else percent(figure)


def _table(heads: Sequence[str], rows: Sequence[Sequence[Any]], *, texts: int) -> str:
    """The first `texts` columns are text, the others numbers."""

    def line(tag: str, cells: Sequence[Any]) -> str:
        texts_of = (f"{cell:,}" if isinstance(cell, int) else _text(cell) for cell in cells)
        return "".join(
            f"<{tag}{' class=n' if place >= texts else ''}>{text}</{tag}>" for place, text in enumerate(texts_of)
        )

    lines = [*([line("th", heads)] if heads else []), *(line("td", row) for row in rows)]
    return "\n".join(('<div class="wide"><table>', *(f"<tr>{cells}</tr>" for cells in lines), "</table></div>"))


def _setting(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)
