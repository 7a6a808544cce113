"""export/fit/report/judged.py: figures of answers, by hand and by definition."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from export.fit.dataset import Part
from export.fit.report.judged import Judged, interval, judge
from export.reference import normalised
from tests.support.samples import squares
from tests.support.toy import toy_checkpoint


def judged(right, found, *, classes=3, sure=0.8):
    """Answers of one score, the rest of which the other labels share."""
    scores = np.full((len(right), classes), (1 - sure) / (classes - 1))
    scores[np.arange(len(right)), found] = sure
    return Judged(
        labels=tuple("abcdefghij"[:classes]),
        files=tuple(Path(f"{n}.jpg") for n in range(len(right))),
        right=np.array(right),
        logits=np.log(scores).astype(np.float32),
    )


def test_figures():
    figures = judged([0, 0, 0, 1], [0, 0, 1, 1]).figures()
    expected = {
        "top1_accuracy": 0.75,
        "top1_low": 0.3006,  # of 3 in 4, by R's prop.test(3, 4, correct=FALSE)
        "top1_high": 0.9544,
        "balanced_accuracy": (2 / 3 + 1) / 2,
        "loss": -(3 * np.log(0.8) + np.log(0.1)) / 4,
        "calibration_error": 0.05,
    }
    assert figures == pytest.approx(expected, abs=1e-4)


def test_the_five_likeliest_of_many_labels():
    one = judged([7, 3], [7, 2], classes=10)
    one.logits[1, [1, 4, 5, 6]] += 1
    assert one.figures()["top5_accuracy"] == 0.5


def test_numbers_of_each_label():
    assert judged([0, 0, 0, 1], [0, 0, 1, 1]).by_label() == [
        {"label": "a", "images": 3, "recall": pytest.approx(2 / 3), "precision": 1.0},
        {"label": "b", "images": 1, "recall": 1.0, "precision": 0.5},
        {"label": "c", "images": 0, "recall": None, "precision": None},
    ]
    np.testing.assert_array_equal(judged([0, 0, 0, 1], [0, 0, 1, 1]).confusion, [[2, 1, 0], [0, 1, 0], [0, 0, 0]])


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_holds_the_share(hits_images):
    hits, images = hits_images
    low, high = interval(hits, images)
    assert 0 <= low <= hits / images + 1e-12
    assert hits / images - 1e-12 <= high <= 1
    # Its ends are the shares for which the one found is 1.96 standard deviations away.
    for end in (low, high):
        assert abs(hits / images - end) == pytest.approx(1.959964 * np.sqrt(max(end * (1 - end), 0) / images), abs=1e-6)


def test_answers_are_those_of_the_network():
    checkpoint = toy_checkpoint()
    samples, files = squares(5, size=(24, 40)), tuple(Path(str(n)) for n in range(5))
    found = judge(checkpoint, Part(files=files, samples=samples, groups=samples.classes))
    expected = checkpoint.model(normalised(samples.pixels.numpy(), checkpoint)).detach().numpy()
    np.testing.assert_allclose(found.logits, expected, rtol=1e-5, atol=1e-5)
    assert (found.labels, found.files, found.right.tolist()) == (checkpoint.labels, files, [0, 1, 2, 0, 1])
