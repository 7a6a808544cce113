"""The result of a method of learning."""

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from model.vit import VisionTransformer


@dataclass(frozen=True, kw_only=True)
class Point:
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
    features: Tensor | None = None  # of the images to learn from, (N, F), where only the head has learned
    recipe: dict[str, Any]  # for JSON: the method, every field of its recipe, and what a search chose
    left_out: Tensor | None = None  # (N, C): logits of each image to learn from by the probe of all others
    figures: dict[str, float] = field(default_factory=dict)  # what the method alone can measure
