"""What one forward pass returned for one image, and the image to draw it on."""

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from app.images.preprocess import Prepared
from app.inference.engine import Outputs

OF_TOKENS = ("attention", "rollout", "distance")
OF_CLASSES = ("evidence", "evidence_heads", "evidence_rest")


@dataclass(frozen=True, kw_only=True)
class Maps:
    """In shapes: L layers, H heads, T tokens (the prefix, then the patches row by row), C classes, the K most likely.

    C and K are 0 for a model without a head.
    Numbers are kept as the graph gives them: half precision would be wrong by up to 4.9e-4 of each.
    """

    attention: npt.NDArray[np.float32]  # (L, H, T): row of the class token after softmax, sums to 1
    rollout: npt.NDArray[np.float32]  # (T,), sums to 1
    classes: npt.NDArray[np.int64]  # (K,), most likely first
    logits: npt.NDArray[np.float32]  # (C,), of all classes
    evidence: npt.NDArray[np.float32]  # (K, L, T): what token t, read in layer l, adds to the logit; signed
    evidence_heads: npt.NDArray[np.float32]  # (K, L, H): the same by head
    evidence_rest: npt.NDArray[np.float32]  # (K, 2): what the MLPs add, and what the constants add
    distance: npt.NDArray[np.float32]  # (L, H): mean attention distance, in patches
    lens: npt.NDArray[np.float32] | None  # (L, K): scores if the head read layer l; None where this has no meaning

    @classmethod
    def of(cls, outputs: Outputs) -> Self:
        """From the graph's outputs for one image, without the batch dimension."""
        kept = {name: outputs[name].astype(np.float32) for name in OF_TOKENS}
        if "classes" not in outputs:
            layers, heads, tokens = outputs["attention"].shape
            shapes = {"evidence": (0, layers, tokens), "evidence_heads": (0, layers, heads), "evidence_rest": (0, 2)}
            kept |= {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
            return cls(**kept, classes=np.zeros(0, np.int64), logits=np.zeros(0, np.float32), lens=None)
        classes = outputs["classes"]
        kept |= {name: outputs[name].astype(np.float32) for name in OF_CLASSES}
        return cls(
            **kept,
            classes=classes.copy(),  # a view would keep the whole batch in memory
            logits=outputs["logits"].astype(np.float32),
            lens=outputs["lens"].astype(np.float32) if "lens" in outputs else None,
        )

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays().values())

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays by name, without those that are None."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: array for name, array in named.items() if array is not None}


@dataclass(frozen=True, kw_only=True)
class Record:
    """What one forward pass returned for one image, and the image to draw it on."""

    maps: Maps
    image: Prepared
