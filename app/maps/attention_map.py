"""One map: its raw numbers, and how they were made."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict
from pydantic.json_schema import SkipJsonSchema

from app.bundle import Prefix

Method = Literal["class_token", "rollout", "evidence", "positive_evidence", "measured"]
Layer = int | Literal["mean", "all", "sum"]
Head = int | Literal["mean", "max", "min", "sum"]


class Chosen(BaseModel):
    """The map that a choice led to: defaults filled in, labels by name."""

    model_config = ConfigDict(frozen=True)

    method: Method
    layer: Layer
    head: Head
    label: str | None = None  # of evidence, positive or not, and of a measured map
    index: int | None = None  # of the label, whose name others may have too
    like: str | None = None  # of evidence for another image, and of a measured map: its id
    against: str | None = None  # of the same: the label or the image that was subtracted
    passes: int | None = None  # of a measured map
    recipe: str  # how the numbers were made, in words


Whole = float | SkipJsonSchema[None]


class Receipt(BaseModel):
    """A logit or the difference of two, or a `cosine` with another image or the difference of two, or the `product`
    with a vector, as a sum of `patches` to `rounding`, over all layers.
    """

    patches: float
    prefix: float  # the tokens before the patches
    mlps: float
    constants: float
    rounding: float  # what is left: of the arithmetic, and in int8 of what attention's projection reads
    logit: Whole = None
    cosine: Whole = None
    product: Whole = None


class Comparison(BaseModel):
    """The receipt of the same label against the most likely other one. A logit alone has no zero: softmax gives the
    same scores if a number is added to all.
    """

    against: str
    receipt: Receipt


@dataclass(frozen=True, kw_only=True)
class AttentionMap:
    """Raw numbers of one map, and how they were made."""

    chosen: Chosen
    values: npt.NDArray[np.float32]  # (rows, columns) of the patch grid, unscaled
    siblings: npt.NDArray[np.float32]  # (..., patches): the maps that a shared scale compares it with
    masses: dict[Prefix, float]  # of the tokens before the patches
    receipt: Receipt | None = None  # of evidence; its positive parts add up to no logit
    comparison: Comparison | None = None  # of evidence for one label, where scores are shared among all
    spread: npt.NDArray[np.float32] | None = None  # of a measured map: the standard error of `values`

    @property
    def signed(self) -> bool:
        """Evidence and measured effects speak for or against a label; attention is a share."""
        return self.chosen.method in ("evidence", "measured")
