"""export/calibration.py: the temperature of data whose temperature is known, and the error of scores that are right."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.inference.scoring import scores
from export.calibration import FAR, Uncalibrated, calibration, calibration_error, is_far, temperature


def drawn(seed: int, images: int):
    """Logits of five classes, and labels that are drawn with the probabilities of the logits."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 2, (images, 5))
    return logits, np.array([rng.choice(5, p=scores(z, "softmax")) for z in logits])


@given(seed=st.integers(0, 2**32 - 1), size=st.floats(-3, 3).map(np.exp))
@settings(max_examples=20)
def test_no_other_temperature_is_likelier(seed, size):
    logits, labels = drawn(seed, 300)
    logits *= size
    best = temperature(logits, labels)

    def likelihood(t: float) -> float:
        return sum(np.log(scores(z, "softmax", t)[label]) for z, label in zip(logits, labels, strict=True))

    assert likelihood(best) >= max(likelihood(best * step) for step in (0.5, 0.9, 0.99, 1.01, 1.1, 2.0))


def test_the_error_by_hand():
    """Two bins: scores of 0.9 that are right on 1 of 2 images, and of 0.6 that are always right."""
    z = np.log([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [0.6, 0.4]])
    assert calibration_error(z, np.array([0, 1, 0, 0])) == pytest.approx((2 * 0.4 + 2 * 0.4) / 4)
    assert calibration_error(np.array([[1000.0, 0.0]]), np.array([0])) == 0


def test_each_half_has_the_temperature_of_the_other():
    """The halves need different temperatures; fitted to themselves they would have less error."""
    logits, labels = drawn(0, 2000)
    logits[::2] *= 4
    crossed = logits.copy()
    crossed[::2] /= temperature(logits[1::2], labels[1::2])
    crossed[1::2] /= temperature(logits[::2], labels[::2])
    found = calibration(logits, labels)
    assert found.temperature == temperature(logits, labels)
    assert found.error_before == calibration_error(logits, labels)
    assert found.error_after == pytest.approx(calibration_error(crossed, labels))


@pytest.mark.parametrize(
    ("logits", "labels", "why"),
    [
        (np.eye(2).repeat(20, axis=0), [0, 1] * 20, "100 labelled images that can be judged, and there are 40"),
        (np.eye(2).repeat(60, axis=0), [0] * 60 + [1] * 60, "all labels are right"),
        (np.eye(2).repeat(60, axis=0), [1] * 60 + [0] * 60, "not likelier than others"),
        (np.eye(2).repeat(60, axis=0) * 1e-9, [1, *[0] * 59, *[1] * 60], "is .*e-10: the logits are too small"),
    ],
)
def test_the_error_says_why_there_is_no_temperature(logits, labels, why):
    with pytest.raises(Uncalibrated, match=why):
        calibration(logits, np.array(labels))


def test_a_temperature_far_from_1_is_refused_where_the_labels_are_doubtful():
    logits, labels = drawn(0, 400)
    hot = logits * 2 * FAR  # the temperature of the labels is 1 for `logits`
    assert calibration(logits, labels, doubt="at chance").temperature == pytest.approx(1, abs=0.2)
    assert is_far(calibration(hot, labels).temperature)
    for scale in (2 * FAR, 1 / (2 * FAR)):
        with pytest.raises(Uncalibrated, match=r"^at chance\. A temperature of .* would hide it"):
            calibration(logits * scale, labels, doubt="at chance")
