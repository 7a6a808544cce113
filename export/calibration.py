"""Scores that say how often they are right: temperature scaling (Guo et al. 2017, arXiv 1706.04599)."""

import numpy as np
import numpy.typing as npt
import torch

from app.bundle import LEAST_TEMPERATURE
from export.measured import Calibration
from model.fit.temperature import temperature as likeliest

BINS = 15  # section 4 of the paper
FEWEST = 100  # images; with fewer, the error says little
# On 600 images, the demo model and a probe of scanned digits have 1.05 and 1.08 with the right labels; 2.5 to 3.6 where
# 2 or 3 of 10 or 12 classes have the labels of others, and about 5 where half of them have. With labels that it has not
# learned the demo model has at least 16.
FAR = 4.0  # times as large as 1, or as small


class Uncalibrated(ValueError):
    """No temperature can be fitted; the message says why."""


def calibration(logits: npt.NDArray[np.floating], labels: npt.NDArray[np.int64], *, doubt: str = "") -> Calibration:
    """The temperature of all images, and the calibration error before and after.

    `logits` are (images, classes), in no order of `labels` (images,). The error after is measured by cross-fitting:
    each half of the images is scored with the temperature that was fitted to the other half. `doubt` says why the
    labels are probably wrong, if they are; then the temperature must not be FAR from 1.
    Raises Uncalibrated.
    """
    check_enough(len(labels))
    of_all = temperature(logits, labels)
    if doubt and is_far(of_all):
        raise Uncalibrated(f"{doubt}. A temperature of {of_all:.3g} would hide it")
    after = np.empty(logits.shape)
    halves = slice(None, None, 2), slice(1, None, 2)
    for fitted, scored in (halves, halves[::-1]):
        after[scored] = logits[scored] / temperature(logits[fitted], labels[fitted])
    return Calibration(
        pictures=len(labels),
        temperature=of_all,
        error_before=calibration_error(logits, labels),
        error_after=calibration_error(after, labels),
    )


def check_enough(images: int) -> None:
    """Raises Uncalibrated."""
    if images < FEWEST:
        raise Uncalibrated(f"a temperature needs {FEWEST} labelled images that can be judged, and there are {images}")


def is_far(temperature: float) -> bool:
    """Whether it is far from 1, as that of a network which learned these labels is not."""
    return not 1 / FAR <= temperature <= FAR


def temperature(logits: npt.NDArray[np.floating], labels: npt.NDArray[np.int64]) -> float:
    """The T > 0 for which softmax(logits / T) makes `labels` most likely. Raises Uncalibrated where there is none."""
    if (logits.argmax(1) == labels).all():
        raise Uncalibrated("no temperature fits best, because all labels are right; give more images, or harder ones")
    z, y = torch.from_numpy(logits).double(), torch.from_numpy(labels)
    if not z.gather(1, y[:, None]).mean() > z.mean():
        raise Uncalibrated("no temperature fits, because the right labels are not likelier than others")
    likely = likeliest(z, y)
    if not likely >= LEAST_TEMPERATURE:
        raise Uncalibrated(f"the temperature that fits best is {likely:.3g}: the logits are too small")
    return likely


def calibration_error(logits: npt.NDArray[np.floating], labels: npt.NDArray[np.int64]) -> float:
    """Expected calibration error of softmax(logits), equation 3 of the paper: (images, classes), (images,)."""
    score, answer = (part.numpy() for part in torch.from_numpy(logits).double().softmax(1).max(1))
    place = np.ceil(score * BINS).astype(int)  # bins are open on the left
    apart = np.bincount(place, weights=(answer == labels) - score)
    return float(np.abs(apart).sum() / len(labels))
