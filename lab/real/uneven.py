"""What weights of labels do to a probe whose labels have uneven numbers of images."""

import numpy as np
import torch
from torch import Tensor

from export.calibration import calibration_error
from lab.benchmarks.record import Row, Rows
from lab.real.data import Data
from lab.real.frozen import Frozen, frozen
from model.fit.least_squares import balanced, least_squares
from model.fit.measure import measured
from model.fit.probe import probe_temperature

SEEDS = 5
UNEVEN = ((120, 2, 3), (100, 5, 10), (60, 5, 60))  # images of the common labels, how many these are, images of others
NEW = 50  # images of each label to judge by, or of the common ones


def measure(data: Data) -> Rows:
    digits = next(frozen(data))
    return [
        _row(digits, many, common, few, alike=alike) for many, common, few in UNEVEN for alike in ("images", "labels")
    ]


def _row(digits: Frozen, many: int, common: int, few: int, *, alike: str) -> Row:
    """Means of all seeds, on as many new images of every label, and on new ones that are as uneven."""
    found: dict[str, list[tuple[float, ...]]] = {"even": [], "as uneven": []}
    for seed in range(SEEDS):
        learned, *new = _divided(digits.classes, many, common, few, seed)
        classes = digits.classes[learned]
        weights = balanced(classes) if alike == "labels" else torch.ones(len(classes), dtype=torch.float64)
        head = least_squares(digits.features[learned], classes, count=int(classes.max()) + 1, weights=weights)
        hardness = probe_temperature(head.left_out, classes)
        for of_all, rows in zip(found.values(), new, strict=True):
            logits = (digits.features[rows].double() @ head.weight.T + head.bias) / hardness
            right = digits.classes[rows]
            score, error = logits.softmax(1).amax(1).mean().item(), calibration_error(logits.numpy(), right.numpy())
            of_all.append((measured(logits, right).accuracy, score, error))
    cells = {
        f"{new}: {title}, %": f"{100 * mean:.1f}"
        for new, of_all in found.items()
        for title, mean in zip(("right", "mean score", "calibration error"), np.mean(of_all, axis=0), strict=True)
    }
    return {"images of a label": f"{many} of {common}, {few} of others", "weigh alike": alike, **cells}


def _divided(classes: Tensor, many: int, common: int, few: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Rows to learn from, and new ones: as many of each label, and as uneven as those that were learned from."""
    chance = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(classes), generator=chance)
    learned, even, uneven = [], [], []
    for place, kind in enumerate(torch.randperm(int(classes.max()) + 1, generator=chance).tolist()):
        rows, count = order[classes[order] == kind], many if place < common else few
        learned.append(rows[:count])
        new = rows[count : count + NEW]
        even.append(new)
        uneven.append(new[: max(round(NEW * count / many), 1)])
    return torch.cat(learned), torch.cat(even), torch.cat(uneven)
