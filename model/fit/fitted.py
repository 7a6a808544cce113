"""The result of a method of learning."""

from dataclasses import dataclass
from typing import Any

from model.fit.measure import Measured
from model.fit.samples import Samples
from model.vit import VisionTransformer


@dataclass(frozen=True, kw_only=True)
class Point:
    """One point of the curves of a run."""

    step: int  # steps done
    epoch: float  # times that each image was seen, so far
    learning_rate: float  # of the last step
    train_loss: float  # mean over the steps since the last point
    held_out_loss: float | None = None  # at the end of each epoch
    accuracy: float | None = None  # top-1, on the held-out images


@dataclass(frozen=True, kw_only=True)
class Fitted:
    model: VisionTransformer  # in eval mode, on the CPU, with its new head, or without one
    history: tuple[Point, ...]  # empty where nothing is learned step by step
    figures: dict[str, float]  # top1_accuracy and loss are those of the held-out images
    recipe: dict[str, Any]  # for JSON: the method, every field of its recipe, and what a search chose


def figures_of(measured: Measured | None, train: Samples, held_out: Samples | None) -> dict[str, float]:
    """Accuracy and loss where they were measured, and of how many images."""
    figures = {"train_images": float(len(train))}
    if measured is not None and held_out is not None:
        figures |= {"top1_accuracy": measured.accuracy, "loss": measured.loss, "held_out_images": float(len(held_out))}
    return figures
