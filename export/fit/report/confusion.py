"""The confusion matrix: which label images of each label got."""

from export.fit.report.chart import Chart, Drawing, text_width
from export.fit.report.judged import Judged

SIDE = 640  # pixels of the matrix, about
SMALLEST, LARGEST = 2.0, 40.0  # of a cell
NAMED, NUMBERED = 16, 24  # cells of at least so many pixels have names beside them, or numbers in them
GAP, HEAD = 8, 28
DARK = 0.55  # share from which a cell is too dark for ink
MOST_PAIRS = 20


def confusion(judged: Judged) -> Chart:
    """A row for each right label, a column for each answer; the colour is as strong as its share of the row."""
    classes = len(judged.labels)
    cell = min(max(SIDE / classes, SMALLEST), LARGEST)
    names = judged.labels if cell >= NAMED else ()
    margin, side = GAP + HEAD + max(map(text_width, names), default=0), classes * cell
    drawing = Drawing(margin + side + GAP, margin + side + GAP)
    of_label = judged.confusion.sum(1)
    for row, column, count in _triples(judged):
        share, (x, y) = count / of_label[row], (margin + column * cell, margin + row * cell)
        right, answer = judged.labels[row], judged.labels[column]
        kind, tip = "right" if row == column else "wrong", f"{count:,} of {of_label[row]:,} images of {right}: {answer}"
        drawing.box(x, y, cell, cell, kind, share=share, tip=tip)
        if cell >= NUMBERED:
            kind = "on" if share > DARK else ""
            drawing.text(x + cell / 2, y + cell / 2, f"{count}", anchor="middle", kind=kind)
    for place in range(classes + 1) if names else (0, classes):
        drawing.line(margin + place * cell, margin, margin + place * cell, margin + side, "faint")
        drawing.line(margin, margin + place * cell, margin + side, margin + place * cell, "faint")
    for place, name in enumerate(names):
        middle = margin + (place + 0.5) * cell
        drawing.text(margin - GAP, middle, name, anchor="end")
        drawing.text(middle, margin - GAP, name, up=True)
    drawing.text(GAP, margin + side / 2, "right label", anchor="middle", up=True)
    drawing.text(margin + side / 2, GAP, "answer", anchor="middle")
    return Chart(
        name="confusion",
        title="Confusion matrix",
        caption="A row is a right label, a column an answer. Off the diagonal, in red, are the mistakes.",
        svg=drawing.svg(),
        numbers={
            "labels": judged.labels,
            "cells": [{"right": row, "answer": column, "images": count} for row, column, count in _triples(judged)],
        },
    )


def mistaken_pairs(judged: Judged) -> list[tuple[str, str, int, int]]:
    """Right label, answer, images, and images of that label; the commonest mistakes first."""
    of_label = judged.confusion.sum(1)
    wrong = [(r, c, n) for r, c, n in _triples(judged) if r != c]
    ordered = sorted(wrong, key=lambda triple: -triple[2])[:MOST_PAIRS]
    return [(judged.labels[r], judged.labels[c], n, int(of_label[r])) for r, c, n in ordered]


def _triples(judged: Judged) -> list[tuple[int, int, int]]:
    """Cells with images: indices of the right label and of the answer, and the number of images."""
    rows, columns = judged.confusion.nonzero()
    return [(int(r), int(c), int(judged.confusion[r, c])) for r, c in zip(rows, columns, strict=True)]
