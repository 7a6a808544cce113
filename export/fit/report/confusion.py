"""The confusion matrix: which label images of each label got."""

import numpy as np
from PIL import Image

from app.drawing.canvas import FAINT, INK, Canvas, text_width
from export.fit.report.judged import Judged
from export.picture import Picture

SIDE = 640  # pixels of the matrix, about
SMALLEST, LARGEST = 3, 64  # of a cell
NAMED, NUMBERED = 14, 24  # cells of at least so many pixels have names beside them, or numbers in them
LONGEST = 18  # characters of a name
MARGIN, TOP = 28, 96
WHITE, FULL, MISTAKEN = np.array([255, 255, 255]), np.array([31, 119, 180]), np.array([192, 57, 43])
DARK = 0.55  # share from which text in a cell is white
MOST_PAIRS = 20


def confusion(judged: Judged) -> Picture:
    """A row for each right label, a column for each answer; the colour is as strong as its share of the row."""
    counts, classes = judged.confusion, len(judged.labels)
    cell = min(max(SIDE // classes, SMALLEST), LARGEST)
    size = max(min(cell - 4, 15), 10)  # of names
    names = [_ascii(label, index) for index, label in enumerate(judged.labels)] if cell >= NAMED else []
    beside = round(max((text_width(name, size=size) for name in names), default=0)) + 16
    left, top = MARGIN + 26 + beside, TOP + beside
    side = classes * cell
    canvas = Canvas(max(left + side + MARGIN, 520), top + side + MARGIN)
    canvas.text(MARGIN, 22, "Confusion matrix", size=22)
    canvas.text(MARGIN, 56, "right label down, answer across; blue is right, red is a mistake", size=15)
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    color = np.where(np.eye(classes, dtype=bool)[..., None], FULL, MISTAKEN)
    pixels = np.rint(WHITE + shares[..., None] * (color - WHITE)).astype(np.uint8)
    canvas.picture(left, top, Image.fromarray(pixels), zoom=cell)
    for place in range(classes + 1) if cell >= NAMED else (0, classes):
        canvas.line(left + place * cell, top, left + place * cell, top + side, color=FAINT)
        canvas.line(left, top + place * cell, left + side, top + place * cell, color=FAINT)
    for place, name in enumerate(names):
        middle = (place + 0.5) * cell
        canvas.text(left - 8, top + middle, name, size=size, anchor="rm")
        canvas.upward_text(left + middle, top - 8 - text_width(name, size=size) / 2, name, size=size)
    if cell >= NUMBERED:
        for (row, column), count in np.ndenumerate(counts):
            if count:
                ink = (255, 255, 255) if shares[row, column] > DARK else INK
                x, y = left + (column + 0.5) * cell, top + (row + 0.5) * cell
                canvas.text(x, y, f"{count}", size=max(min(cell // 3, 16), 10), anchor="mm", color=ink)
    return Picture(
        name="confusion",
        title="Confusion matrix",
        caption="A row is a right label, a column an answer. Off the diagonal are the mistakes.",
        png=canvas.png(),
        numbers={"labels": judged.labels, "cells": _cells(judged)},
    )


def mistaken_pairs(judged: Judged) -> list[tuple[str, str, int, int]]:
    """Right label, answer, images, and images of that label; the commonest mistakes first."""
    of_label = judged.confusion.sum(1)
    wrong = [(r, c, n) for r, c, n in _triples(judged) if r != c]
    ordered = sorted(wrong, key=lambda triple: -triple[2])[:MOST_PAIRS]
    return [(judged.labels[r], judged.labels[c], n, int(of_label[r])) for r, c, n in ordered]


def _cells(judged: Judged) -> list[dict[str, int]]:
    """Cells with images: indices of the right label and of the answer, and the number of images."""
    return [{"right": right, "answer": answer, "images": count} for right, answer, count in _triples(judged)]


def _triples(judged: Judged) -> list[tuple[int, int, int]]:
    rows, columns = judged.confusion.nonzero()
    return [(int(r), int(c), int(judged.confusion[r, c])) for r, c in zip(rows, columns, strict=True)]


def _ascii(label: str, index: int) -> str:
    """As the canvas can draw it: shortened, and by its index where its letters are missing."""
    if not label.isascii():
        return f"label {index}"
    return label if len(label) <= LONGEST else f"{label[: LONGEST - 2]}.."
