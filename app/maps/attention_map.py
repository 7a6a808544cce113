"""One map: its raw numbers, and how they were made."""

from dataclasses import dataclass
from typing import Literal, Self, get_args

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict
from pydantic.json_schema import SkipJsonSchema

from app.bundle import Manifest, Prefix

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

    @classmethod
    def of_tokens(
        cls,
        row: npt.NDArray[np.float32],
        siblings: npt.NDArray[np.float32],
        manifest: Manifest,
        chosen: Chosen,
        *,
        receipt: Receipt | None = None,
        comparison: Comparison | None = None,
    ) -> Self:
        """Separate the patches from the tokens before them, which have no place in the image."""
        prefix = manifest.tokens.prefix
        masses: dict[Prefix, float] = dict.fromkeys(get_args(Prefix), 0.0)
        for name, value in zip(prefix, row[: len(prefix)], strict=True):
            masses[name] += float(value)
        return cls(
            chosen=chosen,
            values=row[len(prefix) :].reshape(manifest.tokens.grid),
            siblings=siblings[..., len(prefix) :],
            masses=masses,
            receipt=receipt,
            comparison=comparison,
        )

    @property
    def signed(self) -> bool:
        """Evidence and measured effects speak for or against a label; attention is a share."""
        return self.chosen.method in ("evidence", "measured")


def one_of(
    numbers: npt.NDArray[np.float32], which: int | Literal["mean", "max", "min", "sum"], *, axis: str
) -> tuple[npt.NDArray[np.float32], str]:
    """One of the first axis, or what the method of arrays with this name makes of all; and which, in words."""
    if isinstance(which, int):
        return numbers[which], f"{axis} {which}"
    return getattr(numbers, which)(axis=0), f"{which} over {axis}s"
