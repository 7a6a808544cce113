"""What a checkpoint says, whatever file it came in."""

from dataclasses import dataclass
from typing import Literal

from model.preprocessing import Preprocessing
from model.vit import VisionTransformer


class CheckpointError(Exception):
    """The file cannot be loaded faithfully; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    name: str
    family: str  # the library whose numbers the model gives
    model: VisionTransformer  # in eval mode
    preprocessing: Preprocessing
    labels: tuple[str, ...]
    score: Literal["softmax", "sigmoid"] = "softmax"
    figures: dict[str, float]  # measured on held-out pictures, empty when none were
