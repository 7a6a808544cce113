"""export/fit/report/: what curves, the confusion matrix and the reliability diagram draw, and their numbers."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from export.fit.report import confusion as matrix
from export.fit.report.confusion import confusion, mistaken_pairs
from export.fit.report.curves import HELD_OUT_COLOR, TRAIN_COLOR, curves
from export.fit.report.reliability import BAR, PALE_BAR, reliability
from model.fit.fitted import Point
from tests.unit.export.fit.report.test_judged import judged


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(BytesIO(png))).astype(int)


def places(png: bytes, color) -> list[tuple[int, int]]:
    """(row, column) of the pixels of a colour."""
    return [tuple(place) for place in np.argwhere((pixels(png) == color).all(-1))]


def point(step, **changes):
    return Point(**{"step": step, "epoch": step / 10, "learning_rate": 0.1, "train_loss": 1.0} | changes)


def test_curves_fall_and_rise_as_their_numbers():
    history = [point(s, train_loss=2 - s / 50, held_out_loss=1.0, accuracy=s / 100) for s in range(10, 100, 10)]
    picture = curves(history)
    train = [(row, column) for row, column in places(picture.png, TRAIN_COLOR) if row > 90]
    held_out = [(row, column) for row, column in places(picture.png, HELD_OUT_COLOR) if row > 90]
    loss = [place for place in held_out if place[0] < 400]
    accuracy = [place for place in held_out if place[0] > 400]
    slopes = [np.polyfit([c for _, c in part], [r for r, _ in part], 1)[0] for part in (train, loss, accuracy)]
    assert slopes[0] > 0.1  # rows count downwards
    assert abs(slopes[1]) < 0.01
    assert slopes[2] < -0.1
    assert picture.numbers[0] == {
        "step": 10,
        "epoch": 1.0,
        "learning_rate": 0.1,
        "train_loss": 1.8,
        "held_out_loss": 1.0,
        "accuracy": 0.1,
    }


@pytest.mark.parametrize(
    "history",
    [
        [point(1)],
        [point(1, train_loss=0.0)],
        [point(s, train_loss=float("nan")) for s in range(3)],
        [point(0, epoch=0.0)],
        [point(s) for s in range(200)],
    ],
)
def test_curves_of_little(history):
    assert pixels(curves(history).png).shape == (700, 900, 3)


def test_right_answers_are_blue_and_mistakes_red():
    picture = confusion(judged([0, 0, 1, 2], [0, 0, 1, 1]))
    blue, red = places(picture.png, (31, 119, 180)), places(picture.png, (192, 57, 43))
    assert (max(blue)[0] - min(blue)[0]) == pytest.approx(2 * matrix.LARGEST, abs=4)
    assert min(red)[0] > max(blue)[0]
    assert max(column for _, column in red) == pytest.approx(max(column for _, column in blue), abs=2)
    assert picture.numbers == {
        "labels": ("a", "b", "c"),
        "cells": [
            {"right": 0, "answer": 0, "images": 2},
            {"right": 1, "answer": 1, "images": 1},
            {"right": 2, "answer": 1, "images": 1},
        ],
    }


@pytest.mark.parametrize("classes", [2, 30, 60, 300, 1000])
def test_any_number_of_labels_fits(classes):
    one = judged([0, 1], [0, 0], classes=2)
    labels = tuple(f"a label of many letters {n}" if n % 2 else f"標籤 {n}" for n in range(classes))
    many = type(one)(labels=labels, files=one.files, right=one.right, logits=np.zeros((2, classes), np.float32))
    assert pixels(confusion(many).png).shape[0] < 200 + max(3 * classes, 900)


def test_the_commonest_mistakes_come_first():
    assert mistaken_pairs(judged([0, 0, 0, 1, 2], [1, 1, 2, 0, 2])) == [
        ("a", "b", 2, 3),
        ("a", "c", 1, 3),
        ("b", "a", 1, 1),
    ]


def test_bars_are_as_high_as_their_answers_are_right():
    one = judged([0] * 20, [0] * 15 + [1] * 5, sure=0.78)
    picture = reliability(one)
    bar = places(picture.png, BAR)
    assert 560 - min(bar)[0] == pytest.approx(0.75 * 460, abs=5)
    assert 100 + 0.73 * 510 <= min(column for _, column in bar) <= max(column for _, column in bar) <= 100 + 0.8 * 510
    assert places(picture.png, PALE_BAR) == []
    filled = [bin for bin in picture.numbers if bin["images"]]
    assert filled == [{"images": 20, "score": pytest.approx(0.78), "right": 0.75}]
    assert len(picture.numbers) == 15


def test_bars_of_few_images_are_pale():
    assert places(reliability(judged([0] * 9, [0] * 9)).png, PALE_BAR)
