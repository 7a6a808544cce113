"""What if some patches were not there? Their real effect on a logit, and that of random sets of as many. Arrays only.

Samek et al. 2017 (arXiv 1509.06321) and Petsiuk et al. 2018 (arXiv 1806.07421) cover patches to judge a map.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from app.maps.faithfulness import ranked, seeded


def top(values: npt.NDArray[np.float32], share: float) -> npt.NDArray[np.bool_]:
    """The patches (patches,) with the largest values of a map (rows, columns): `share` of them, and at least one."""
    highest = np.zeros(values.size, bool)
    highest[ranked(values)[: max(round(share * values.size), 1)]] = True
    return highest


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """Which patches to cover for each image."""

    covered: npt.NDArray[np.bool_]  # (2 + random sets, patches): nothing; the patches; random sets of as many

    @classmethod
    def of(cls, patches: npt.NDArray[np.bool_], *, random_sets: int, seed: bytes) -> Self:
        """`patches` (patches,) are True where they are covered. The same seed gives the same random sets."""
        sets = seeded(seed).permuted(np.tile(patches, (random_sets, 1)), axis=1)
        return cls(covered=np.vstack([np.zeros_like(patches), patches, sets]))


def share_as_large(effect: float, of_random: npt.NDArray[np.float64]) -> float:
    """Share of the effects of random sets that are at least as large, in either direction."""
    return float(np.mean(np.abs(of_random) >= abs(effect)))
