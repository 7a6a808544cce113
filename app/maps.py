"""What the explaining graph says of one picture, in the types in which it is kept."""

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from app.engine import Outputs


@dataclass(frozen=True, kw_only=True)
class Maps:
    """In shapes: L layers, H heads, T tokens (the prefix, then the patches row by row)."""

    attention: npt.NDArray[np.float16]  # (L, H, T): row of the class token after softmax, sums to 1
    rollout: npt.NDArray[np.float32]  # (T,), sums to 1

    @classmethod
    def of(cls, outputs: Outputs) -> Self:
        """From the graph's outputs for one picture, without the batch dimension."""
        return cls(attention=outputs["attention"].astype(np.float16), rollout=outputs["rollout"].astype(np.float32))

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays().values())

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {field.name: getattr(self, field.name) for field in fields(self)}
