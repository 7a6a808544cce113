"""The report as one HTML page that holds its charts and images and needs nothing else."""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from export.fit.report.chart import Chart
from export.fit.report.confusion import mistaken_pairs
from export.fit.report.judged import Judged, percent
from export.fit.report.mistakes import Mistake, picture

TEMPLATE = Path(__file__).with_name("page.html")
MOST_LABELS = 200  # of the table
MAPS = (
    "Each image is followed by the evidence and by the rollout. Evidence: what each patch adds to the logit of the "
    "answer less what it adds to that of the right label; red speaks for the answer, blue for the right label. "
    "Rollout: how strongly each patch is attended to, through all layers. A click opens them larger."
)


def page(
    *,
    name: str,
    headline: str,
    origin: str,
    following: str,
    notes: Sequence[str],
    recipe: dict[str, Any],
    figures: dict[str, Any],
    charts: Sequence[Chart],
    counts: Sequence[int],
    judged: Judged | None,
    mistakes: Sequence[Mistake],
) -> str:
    """HTML. `headline`, `origin` and `notes` are sentences; `following` is a command; `counts` are the images of each
    label that were learned from.
    """
    tried = recipe.get("tried")
    facts = {fact: value for fact, value in (*recipe.items(), *figures.items()) if fact != "tried"}
    parts = [
        f'<p class="headline">{_text(headline)}</p>',
        f'<p class="note">{_text(origin)}</p>',
        f"<p>Next: <code>{_text(following)}</code></p>",
        f"<ul>{''.join(f'<li>{_text(note)}</li>' for note in notes)}</ul>",
        *map(_figure, charts),
        *([_labels(judged, counts), _pairs(judged), _mistakes(judged, mistakes)] if judged else ()),
        _section("Learning rates that were tried", _tried(tried)) if tried else "",
        _section("Recipe and figures", _table((), [*_rows(facts)], texts=2)),
    ]
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(name=escape(name), content="\n".join(parts))


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


def _pairs(judged: Judged) -> str:
    pairs = mistaken_pairs(judged)
    heads = ("right label", "answer", "images", "of")
    return _section("Commonest mistakes", _table(heads, pairs, texts=2)) if pairs else ""


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


def _table(heads: Sequence[str], rows: Sequence[Sequence[Any]], *, texts: int) -> str:
    """The first `texts` columns are text, the others numbers."""

    def line(tag: str, cells: Sequence[Any]) -> str:
        texts_of = (f"{cell:,}" if isinstance(cell, int) else _text(cell) for cell in cells)
        return "".join(
            f"<{tag}{' class=n' if place >= texts else ''}>{text}</{tag}>" for place, text in enumerate(texts_of)
        )

    lines = [*([line("th", heads)] if heads else []), *(line("td", row) for row in rows)]
    return "\n".join(('<div class="wide"><table>', *(f"<tr>{cells}</tr>" for cells in lines), "</table></div>"))


def _rows(facts: dict[str, Any], place: str = "") -> Iterator[tuple[str, str]]:
    """Name and value of each fact, and of the parts of a fact with its name before theirs, as --recipe takes them."""
    for name, value in facts.items():
        if isinstance(value, dict):
            yield from _rows(value, f"{place}{name}.")
        elif isinstance(value, list | tuple):
            yield place + name, ",".join(map(str, value))
        else:
            yield place + name, f"{value:.4g}" if isinstance(value, float) else str(value)
