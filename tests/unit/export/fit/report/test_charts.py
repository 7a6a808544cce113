"""export/fit/report/: what curves, the confusion matrix and the reliability diagram draw, and their numbers."""

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from export.fit.report.confusion import LARGEST, confusion, mistaken_pairs
from export.fit.report.curves import curves
from export.fit.report.reliability import reliability
from model.fit.fitted import Point
from tests.unit.export.fit.report.test_judged import judged


def shapes(svg: str, tag: str, kind: str | None = None) -> list[dict[str, str]]:
    """Attributes of all shapes of a tag and a class, with their text as `text`."""
    parts = [part for part in ElementTree.fromstring(svg).iter() if part.tag.endswith(f"}}{tag}")]
    found = [part for part in parts if kind in (None, part.get("class"))]
    return [part.attrib | {"text": "".join(part.itertext())} for part in found]


def point(step, **changes):
    return Point(**{"step": step, "epoch": step / 10, "learning_rate": 0.1, "train_loss": 1.0} | changes)


def test_curves_fall_and_rise_as_their_numbers():
    history = [point(s, train_loss=2 - s / 50, held_out_loss=1.0, accuracy=s / 100) for s in range(10, 100, 10)]
    chart = curves(history)
    train, held_out = (shapes(chart.svg, "circle", kind) for kind in ("learned", "right"))
    learned, loss, accuracy = ([float(dot["cy"]) for dot in dots] for dots in (train, held_out[:9], held_out[9:]))
    assert learned == sorted(learned)  # downwards on the sheet
    assert len(set(loss)) == 1
    assert accuracy == sorted(accuracy, reverse=True)
    assert (chart.numbers[0]["epoch"], chart.numbers[0]["train_loss"], chart.numbers[0]["accuracy"]) == (1.0, 1.8, 0.1)


@pytest.mark.parametrize(
    ("history", "dots"),
    [
        ([point(1)], 1),
        ([point(s, train_loss=float("nan")) for s in range(3)], 0),
        ([point(s) for s in range(200)], 0),  # a line alone
    ],
)
def test_curves_of_little(history, dots):
    assert len(shapes(curves(history).svg, "circle")) == dots


def test_right_answers_and_mistakes_are_in_their_cells():
    chart = confusion(judged([0, 0, 1, 2], [0, 0, 1, 1]))
    right, wrong = shapes(chart.svg, "rect", "right"), shapes(chart.svg, "rect", "wrong")
    assert [cell["text"] for cell in right] == ["2 of 2 images of a: a", "1 of 1 images of b: b"]
    assert [cell["text"] for cell in wrong] == ["1 of 1 images of c: b"]
    assert float(wrong[0]["y"]) - float(right[1]["y"]) == pytest.approx(LARGEST)
    assert wrong[0]["x"] == right[1]["x"]
    cells = [dict(zip(("right", "answer", "images"), cell, strict=True)) for cell in ((0, 0, 2), (1, 1, 1), (2, 1, 1))]
    assert chart.numbers == {"labels": ("a", "b", "c"), "cells": cells}


@pytest.mark.parametrize(("classes", "named"), [(2, True), (30, True), (60, False), (1000, False)])
def test_names_are_in_full_where_they_fit(classes, named):
    labels = tuple(f"<a label> of many letters & {n}" if n % 2 else f"標籤 {n}" for n in range(classes))
    many = replace(judged([0, 1], [0, 0], classes=2), labels=labels, logits=np.zeros((2, classes), np.float32))
    chart = confusion(many)
    assert all(([text["text"] for text in shapes(chart.svg, "text")].count(label) == 2) == named for label in labels)
    assert labels[1] in shapes(chart.svg, "rect", "wrong")[0]["text"]  # under a pointer, however many there are


def test_the_commonest_mistakes_come_first():
    pairs = mistaken_pairs(judged([0, 0, 0, 1, 2], [1, 1, 2, 0, 2]))
    assert pairs == [("a", "b", 2, 3), ("a", "c", 1, 3), ("b", "a", 1, 1)]


def test_bars_are_as_high_as_their_answers_are_right():
    chart = reliability(judged([0] * 20, [0] * 15 + [1] * 5, sure=0.78))
    (bar,) = shapes(chart.svg, "rect")
    assert float(bar["height"]) == pytest.approx(0.75 * (444 - 12), abs=0.1)
    assert float(bar["x"]) == pytest.approx(64 + 11 / 15 * (500 - 64) + 1, abs=0.1)
    assert bar["text"] == "75.0 % of 20"
    filled = [bin for bin in chart.numbers if bin["images"]]
    assert filled == [{"images": 20, "score": pytest.approx(0.78), "right": 0.75}]
    assert len(chart.numbers) == 15
    (pale,) = shapes(reliability(judged([0] * 9, [0] * 9)).svg, "rect")  # of few images
    assert float(pale["fill-opacity"]) < float(bar["fill-opacity"])
