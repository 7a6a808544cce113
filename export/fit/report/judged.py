"""The answers of a network for held-out images, and their quality: N images, C classes."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from export.calibration import calibration_error
from export.fit.dataset import Part
from model.checkpoints.checkpoint import Checkpoint
from model.fit.measure import logits, measured
from model.fit.network import best_device

TOP = 5
NORMAL = 1.959964  # of 95 %


@dataclass(frozen=True, kw_only=True)
class Judged:
    labels: tuple[str, ...]
    files: tuple[Path, ...]
    right: npt.NDArray[np.int64]  # (N,): the right classes
    logits: npt.NDArray[np.float32]  # (N, C)

    @cached_property
    def answers(self) -> npt.NDArray[np.int64]:
        """(N,): the likeliest classes."""
        return self.logits.argmax(1)

    @cached_property
    def scores(self) -> npt.NDArray[np.float64]:
        """(N, C), each row with the sum 1."""
        return torch.from_numpy(self.logits).double().softmax(1).numpy()

    @cached_property
    def confusion(self) -> npt.NDArray[np.int64]:
        """(C, C): how many images of a class, down, got which label, across."""
        classes = len(self.labels)
        counts = np.bincount(self.right * classes + self.answers, minlength=classes**2)
        return counts.reshape(classes, classes).astype(np.int64)

    def figures(self) -> dict[str, float]:
        """Shares are from 0 to 1. `top1_low` and `top1_high` are the ends of the 95 % interval of `top1_accuracy`."""
        hits = self.answers == self.right
        low, high = interval(int(hits.sum()), len(hits))
        found = measured(torch.from_numpy(self.logits), torch.from_numpy(self.right))
        figures = {
            "top1_accuracy": found.accuracy,
            "top1_low": low,
            "top1_high": high,
            "balanced_accuracy": fmean(share for share in self.recall() if share is not None),
            "loss": found.loss,
            "calibration_error": calibration_error(self.logits, self.right),
        }
        if len(self.labels) > TOP:
            best = np.argpartition(-self.logits, TOP, axis=1)[:, :TOP]
            figures["top5_accuracy"] = float((best == self.right[:, None]).any(1).mean())
        return figures

    def recall(self) -> list[float | None]:
        """The share of each label's images that got it."""
        return _shares(self.confusion.diagonal(), self.confusion.sum(1))

    def by_label(self) -> list[dict[str, Any]]:
        """JSON: each label's number of images, recall, and precision: the share of its answers that are right."""
        precision = _shares(self.confusion.diagonal(), self.confusion.sum(0))
        numbers = zip(self.labels, self.confusion.sum(1).tolist(), self.recall(), precision, strict=True)
        return [dict(zip(("label", "images", "recall", "precision"), of_label, strict=True)) for of_label in numbers]


def judge(checkpoint: Checkpoint, images: Part) -> Judged:
    """The answers of the network in float32 for images of the size that the service gives it."""
    found = logits(checkpoint.model.to(best_device()), images.samples, checkpoint.preprocessing, title="judging")
    checkpoint.model.cpu()
    return Judged(
        labels=checkpoint.labels, files=images.files, right=images.samples.classes.numpy(), logits=found.numpy()
    )


def interval(hits: int, images: int) -> tuple[float, float]:
    """The 95 % interval of a share of which `hits` of `images` were seen: Wilson 1927, "Probable inference"."""
    share, spread = hits / images, NORMAL**2 / images
    middle = (share + spread / 2) / (1 + spread)
    half = np.sqrt(spread * (share * (1 - share) + spread / 4)) / (1 + spread)
    return max(middle - float(half), 0.0), min(middle + float(half), 1.0)


def percent(share: float | None) -> str:
    return "none" if share is None else f"{100 * share:.1f} %"


def _shares(parts: npt.NDArray[np.int64], wholes: npt.NDArray[np.int64]) -> list[float | None]:
    """None where the whole is 0."""
    return [part / whole if whole else None for part, whole in zip(parts.tolist(), wholes.tolist(), strict=True)]
