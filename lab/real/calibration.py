"""Whether the scores of a probe are as large as they are often right, by where their temperature comes from."""

from statistics import fmean

import torch
from torch import Tensor

from export.calibration import calibration_error
from lab.benchmarks.record import Row, Rows
from lab.real.data import Data
from lab.real.frozen import Frozen, frozen
from model.fit.choosing import divide
from model.fit.least_squares import least_squares
from model.fit.measure import measured
from model.fit.probe import probe_temperature

DIVISIONS = 10  # into four fifths to learn from and a fifth held out
FOLDS = 5
NONE, LEFT_OUT, OF_FOLDS, BEST = "none", "each left out", "folds", "best"  # the last sees the held-out images


def measure(data: Data) -> Rows:
    return [_row(images) for images in frozen(data)]


def _row(images: Frozen) -> Row:
    """Over the held-out images of all divisions. `apart` is of one division, in the mean."""
    divisions = [_answers(images, seed) for seed in range(DIVISIONS)]
    right = torch.cat([classes for classes, _ in divisions])
    logits = {name: torch.cat([of_all[name] for _, of_all in divisions]) for name in divisions[0][1]}
    found = {name: measured(of_one, right) for name, of_one in logits.items()}
    error = {name: calibration_error(of_one.numpy(), right.numpy()) for name, of_one in logits.items()}
    apart = fmean(
        abs(_score(of_all[LEFT_OUT]) - measured(of_all[LEFT_OUT], classes).accuracy) for classes, of_all in divisions
    )
    return {
        "images": images.images,
        "held out": len(divisions[0][0]),
        "right, %": f"{100 * found[NONE].accuracy:.1f}",
        "mean score, %": _cell({name: 100 * _score(logits[name]) for name in logits}, 1),
        "one division apart, points": f"{100 * apart:.1f}",
        "calibration error, %": _cell({name: 100 * error[name] for name in logits}, 1),
        "log loss": _cell({name: found[name].loss for name in logits}, 3),
    }


def _answers(images: Frozen, seed: int) -> tuple[Tensor, dict[str, Tensor]]:
    """The classes of the held-out images, and their logits (N, C) by where the temperature is from."""
    learning, held_out = divide(images.classes, seed)
    features, classes = images.features[learning], images.classes[learning]
    head = least_squares(features, classes, count=int(images.classes.max()) + 1)
    logits = images.features[held_out].double() @ head.weight.T + head.bias
    temperatures = {
        NONE: 1.0,
        LEFT_OUT: probe_temperature(head.left_out, classes),
        OF_FOLDS: probe_temperature(_of_folds(features, classes, seed), classes),
        BEST: probe_temperature(logits, images.classes[held_out]),
    }
    return images.classes[held_out], {name: logits / divisor for name, divisor in temperatures.items()}


def _of_folds(features: Tensor, classes: Tensor, seed: int) -> Tensor:
    """Logits (N, C) of each image by a head of the other folds, which have equal shares of each class."""
    mixed = torch.randperm(len(classes), generator=torch.Generator().manual_seed(seed))
    fold = torch.empty_like(classes)
    fold[mixed[classes[mixed].argsort(stable=True)]] = torch.arange(len(classes)) % FOLDS
    logits = torch.empty(len(classes), int(classes.max()) + 1, dtype=torch.float64)
    for number in range(FOLDS):
        others = fold != number
        head = least_squares(features[others], classes[others], count=logits.shape[1])
        logits[~others] = features[~others].double() @ head.weight.T + head.bias
    return logits


def _score(logits: Tensor) -> float:
    """The mean score of the answers."""
    return logits.softmax(1).amax(1).mean().item()


def _cell(figures: dict[str, float], digits: int) -> str:
    return " / ".join(f"{figure:.{digits}f}" for figure in figures.values())
