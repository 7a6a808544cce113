"""export/agreement.py: shares and differences, of an engine whose every answer is known."""

import dataclasses
from functools import cache

import numpy as np
import pytest
import torch

from app.inference.scoring import scores
from export import agreement as asking
from export import images
from export.agreement import Answers, agreement, answers, of_both
from export.image_spec import image_spec
from export.images import JUDGED, RANGES, drawn_images
from export.reference import normalised
from model.shapes import LABELS
from tests.support.toy import toy_checkpoint, toy_model


class Torch:
    """The model itself, with the logits of the first of every `wrong` pictures turned upside down."""

    def __init__(self, checkpoint, *, wrong):
        self.checkpoint, self.wrong, self.seen = checkpoint, wrong, 0

    @torch.no_grad()
    def run(self, graph, images, classes=()):
        assert graph == "classify"
        logits = self.checkpoint.model(normalised(images, self.checkpoint)).numpy()
        places = np.arange(self.seen, self.seen + len(images))
        self.seen += len(images)
        return {"logits": np.where(places[:, None] % self.wrong == 0, -logits, logits)}


@cache
def drawn(labels):
    """For a toy with these labels."""
    return drawn_images(image_spec(toy_checkpoint().preprocessing), labels=labels)


def answered(checkpoint, images, *, wrong):
    return answers(of_both(checkpoint, images, Torch(checkpoint, wrong=wrong)), images)


def measure(checkpoint, *, wrong):
    compared = drawn(checkpoint.labels)
    return agreement(answered(checkpoint, compared, wrong=wrong), compared, checkpoint)


def test_an_image_with_another_label_counts_as_one_of_all():
    found = measure(toy_checkpoint(), wrong=97)
    assert (found.pictures, found.top1, found.accuracy) == (96, 95 / 96, None)
    assert (found.source, found.ranges) == ("drawn", 24)
    assert 0.1 < found.probability_max <= 1
    assert found.probability_mean == pytest.approx(found.probability_max / 96)


def test_the_demos_labels_are_held_against_the_truth(monkeypatch):
    monkeypatch.setattr(images, "HELD_OUT", 24)
    toy = toy_checkpoint()
    config = dataclasses.replace(toy.config, num_classes=len(LABELS))
    found = measure(dataclasses.replace(toy, config=config, model=toy_model(config), labels=LABELS), wrong=25)
    assert (found.pictures, found.top1) == (24, 23 / 24)
    assert max(found.accuracy, found.accuracy_fp32) < 0.5  # of random weights
    assert abs(found.accuracy - found.accuracy_fp32) <= 1 / 24


@pytest.mark.parametrize(
    ("right", "of", "share", "expected"),
    [
        (8, 10, 0.5, 56 / 1024),
        (0, 3, 0.5, 1),
        (3, 3, 0.1, 0.001),
        (5, 5, 1.0, 1),
        (1, 5, 0.0, 0),
        (900, 2000, 0.5, 1),
    ],
)
def test_the_exact_binomial_test(right, of, share, expected):
    assert asking.at_least(right, of, share) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("classes", [2, 12])
@pytest.mark.parametrize("seed", range(5))
def test_labels_at_chance_are_said(classes, seed):
    rng = np.random.default_rng(seed)
    labels = np.sort(rng.integers(0, classes, 200)) // 2  # some labels have no image, others have many
    lean = rng.normal(0, 1, (200, classes)).astype(np.float32)
    assert "no more than chance" in asking.chance(Answers(expected=lean, lean=lean, labels=labels))
    lean[np.arange(200), labels] += 1.5
    assert not asking.chance(Answers(expected=lean, lean=lean, labels=labels))
    assert not asking.chance(Answers(expected=lean, lean=lean, labels=None))


def test_one_label_alone_is_no_chance():
    """As all answers are right, they are so by more than chance, although no other label shows it."""
    lean = np.eye(12, dtype=np.float32)[np.full(50, 3)]
    assert not asking.chance(Answers(expected=lean, lean=lean, labels=np.full(50, 3)))
    assert asking.chance(Answers(expected=lean, lean=lean, labels=np.full(50, 4)))


def test_images_so_few_that_chance_could_get_all_right_say_nothing_of_labels():
    lean, labels = np.eye(12, dtype=np.float32)[[3, 4, 5]], np.array([3, 4, 5])
    assert not asking.chance(Answers(expected=lean[:2], lean=lean[:2], labels=labels[:2]))
    assert asking.chance(Answers(expected=lean, lean=lean, labels=labels[::-1]))


def test_no_batch_is_begun_after_the_time(monkeypatch):
    monkeypatch.setitem(asking.TIME_LIMIT_S, "drawn", -1.0)
    assert measure(toy_checkpoint(), wrong=97).pictures == asking.BATCH


def test_no_image_gives_ranges_and_is_judged_too():
    """Else the figure would be that of images to which the rounding was fitted."""
    of = drawn(toy_checkpoint().labels)
    assert len({image.tobytes() for image in (*of.ranges, *of.judged)}) == RANGES + JUDGED


def test_differences_and_accuracies_are_those_of_the_scores_that_are_served():
    expected, lean = np.array([[0.0, 1.0], [2.0, 1.0]], np.float32), np.array([[0.0, 1.5], [1.0, 2.0]], np.float32)
    found = Answers(expected=expected, lean=lean, labels=np.array([1, 1]))
    checkpoint = dataclasses.replace(toy_checkpoint(), temperature=3.0)
    pairs = zip(lean, expected, strict=True)
    apart = [abs(scores(one, "softmax", 3.0) - scores(other, "softmax", 3.0)).max() for one, other in pairs]
    measured = agreement(found, drawn(checkpoint.labels), checkpoint)
    assert (measured.probability_mean, measured.probability_max) == pytest.approx((np.mean(apart), max(apart)))
    assert (measured.top1, measured.accuracy, measured.accuracy_fp32) == (0.5, 1, 0.5)
