"""The report as one HTML page that holds its pictures and needs nothing else."""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from export.fit.report.confusion import mistaken_pairs
from export.fit.report.judged import Judged
from export.fit.report.mistakes import Mistake
from export.picture import Picture

TEMPLATE = Path(__file__).with_name("page.html")
MOST_LABELS = 200  # of the table
MAPS = (
    "Each image is followed by the evidence and by the rollout. Evidence: what each patch adds to the logit of the "
    "answer less what it adds to that of the right label; red speaks for the answer, blue for the right label. "
    "Rollout: how strongly each patch is attended to, through all layers."
)


def page(
    *,
    name: str,
    headline: str,
    notes: Sequence[str],
    facts: dict[str, Any],
    pictures: Sequence[Picture],
    counts: Sequence[int],
    judged: Judged | None,
    mistakes: Sequence[Mistake],
) -> str:
    """HTML. `headline` and `notes` are sentences; `facts` are shown in a table; `counts` are the images of each label
    that were learned from.
    """
    parts = [f'<p class="headline">{escape(headline)}</p>']
    if notes:
        parts.append(f"<ul>{''.join(f'<li>{escape(note)}</li>' for note in notes)}</ul>")
    parts += [_figure(picture) for picture in pictures]
    if judged:
        parts += [_labels(judged, counts), _pairs(judged), _mistakes(judged, mistakes)]
    parts.append("<h2>Recipe and figures</h2>" + _table((), [*_rows(facts)]))
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(name=escape(name), content="\n".join(parts))


def _figure(picture: Picture) -> str:
    return (
        f"<h2>{escape(picture.title)}</h2>\n<figure>{_image(picture.png, picture.title)}"
        f"<figcaption>{escape(picture.caption)}</figcaption></figure>"
    )


def _image(png: bytes, text: str) -> str:
    return f'<img alt="{escape(text)}" src="data:image/png;base64,{b64encode(png).decode()}">'


def _labels(judged: Judged, counts: Sequence[int]) -> str:
    """The labels that are found least often first."""
    numbers = sorted(
        zip(judged.by_label(), counts, strict=True), key=lambda pair: (pair[0]["recall"] is None, pair[0]["recall"])
    )
    rows = [
        (of["label"], count, of["images"], _percent(of["recall"]), _percent(of["precision"]))
        for of, count in numbers[:MOST_LABELS]
    ]
    heads = ("label", "learned from", "held out", "recall", "precision")
    note = "Recall: the share of a label's images that got it. Precision: how often the answer is right."
    more = f" The {MOST_LABELS} labels of the lowest recall are shown." if len(numbers) > MOST_LABELS else ""
    return f'<h2>Labels</h2>\n<p class="note">{note}{more}</p>\n{_table(heads, rows)}'


def _pairs(judged: Judged) -> str:
    pairs = mistaken_pairs(judged)
    if not pairs:
        return ""
    return "<h2>Commonest mistakes</h2>\n" + _table(
        ("right label", "answer", "images", "of"), ((right, answer, count, of) for right, answer, count, of in pairs)
    )


def _mistakes(judged: Judged, mistakes: Sequence[Mistake]) -> str:
    head = "<h2>Most confident mistakes</h2>"
    if not mistakes:
        return f"{head}\n<p>All {len(judged.files):,} held-out images got the right label.</p>"
    figures = "\n".join(_mistake(mistake) for mistake in mistakes)
    return f'{head}\n<p class="note">{MAPS}</p>\n<div class="mistakes">\n{figures}\n</div>'


def _mistake(mistake: Mistake) -> str:
    text = f"{mistake.answer} ({_percent(mistake.answer_score)}) in place of {mistake.right} "
    text += f"({_percent(mistake.right_score)})"
    return (
        f"<figure>{_image(mistake.png, text)}<figcaption>{escape(text)}<br>"
        f'<span class="file">{escape(str(mistake.file))}</span></figcaption></figure>'
    )


def _table(heads: Iterable[str], rows: Iterable[Sequence[Any]]) -> str:
    """Numbers stand on the right: columns whose first cell is one."""
    rows = list(rows)
    numbers = [isinstance(cell, int) or str(cell).endswith("%") for cell in rows[0]]
    head = "".join(_cell("th", name, number) for name, number in zip(heads, numbers, strict=False))
    body = "".join(
        f"<tr>{''.join(_cell('td', cell, number) for cell, number in zip(row, numbers, strict=True))}</tr>\n"
        for row in rows
    )
    return f"<table>{f'<tr>{head}</tr>' if head else ''}\n{body}</table>"


def _cell(tag: str, value: Any, number: bool) -> str:
    text = f"{value:,}" if isinstance(value, int) else escape(str(value))
    return f"<{tag}{' class=n' if number else ''}>{text}</{tag}>"


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{share:.1%}"


def _rows(facts: dict[str, Any], place: str = "") -> Iterator[tuple[str, str]]:
    """Name and value of each fact, and of the parts of a fact with its name before theirs."""
    for name, value in facts.items():
        if isinstance(value, dict):
            yield from _rows(value, f"{place}{name}.")
        else:
            yield place + name, f"{value:.4g}" if isinstance(value, float) else str(value)
