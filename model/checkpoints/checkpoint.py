"""What a checkpoint says, whatever file it came in."""

from dataclasses import dataclass, field
from typing import Literal

from model.config import ViTConfig
from model.preprocessing import Preprocessing
from model.vit import VisionTransformer


class CheckpointError(Exception):
    """The file cannot be loaded faithfully; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Description:
    """Everything but the weights."""

    name: str
    family: str  # the library whose numbers the model gives
    architecture: str  # that library's word for it
    config: ViTConfig
    preprocessing: Preprocessing
    labels: tuple[str, ...]
    score: Literal["softmax", "sigmoid"] = "softmax"
    origins: dict[str, str] = field(default_factory=dict)  # where each fact was found
    overrides: dict[str, str] = field(default_factory=dict)  # facts that a person has set
    figures: dict[str, float] = field(default_factory=dict)  # measured on held-out pictures


@dataclass(frozen=True, kw_only=True)
class Checkpoint(Description):
    """With the weights."""

    model: VisionTransformer  # in eval mode
