"""export/agreement.py: shares and differences, of answers that are known. test_embeddings.py asks both for images."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from app.inference.scoring import scores
from export import agreement as asking
from export.agreement import Answers, agreement, answers, of_both
from export.image_spec import image_spec
from export.images import JUDGED, RANGES, drawn_images
from tests.support.toy import toy_checkpoint


@pytest.fixture(scope="module")
def images():
    return drawn_images(image_spec(toy_checkpoint().preprocessing), labels=())


@pytest.mark.parametrize(
    ("right", "of", "share", "expected"),
    [(8, 10, 0.5, 56 / 1024), (3, 3, 0.1, 0.001), (5, 5, 1.0, 1), (1, 5, 0.0, 0), (900, 2000, 0.5, 1)],
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


def test_no_batch_is_begun_after_the_time(images, monkeypatch):
    monkeypatch.setitem(asking.TIME_LIMIT_S, "drawn", -1.0)
    lean = SimpleNamespace(run=lambda graph, batch: {"logits": np.zeros((len(batch), 7))})
    found = answers(of_both(toy_checkpoint(), images, lean), dataclasses.replace(images, labels=np.arange(JUDGED)))
    assert len(found.expected) == len(found.lean) == len(found.labels) == asking.BATCH


def test_no_image_gives_ranges_and_is_judged_too(images):
    """Else the figure would be that of images to which the rounding was fitted."""
    assert len({image.tobytes() for image in (*images.ranges, *images.judged)}) == RANGES + JUDGED


def test_differences_and_accuracies_are_those_of_the_scores_that_are_served(images):
    expected, lean = np.array([[0.0, 1.0], [2.0, 1.0]], np.float32), np.array([[0.0, 1.5], [1.0, 2.0]], np.float32)
    found = Answers(expected=expected, lean=lean, labels=np.array([1, 1]))
    checkpoint = dataclasses.replace(toy_checkpoint(), temperature=3.0)
    pairs = zip(lean, expected, strict=True)
    apart = [abs(scores(one, "softmax", 3.0) - scores(other, "softmax", 3.0)).max() for one, other in pairs]
    measured = agreement(found, images, checkpoint)
    assert (measured.probability_mean, measured.probability_max) == pytest.approx((np.mean(apart), max(apart)))
    assert (measured.top1, measured.accuracy, measured.accuracy_fp32) == (0.5, 1, 0.5)
