"""Occlusion: how much the score falls when one patch is covered."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from app.maps.covering import cover, filled


def occlusion(
    pixels: npt.NDArray[np.uint8], score: Callable[[npt.NDArray[np.uint8]], npt.NDArray[np.float64]], *, patch: int
) -> npt.NDArray[np.float32]:
    """(patches,), with the mean colour in place of each patch of `pixels` (height, width, 3).

    `score` is of one class, (n,) for images (n, height, width, 3). Zeiler & Fergus 2014, arXiv 1311.2901, section 4.2.
    """
    patches = (pixels.shape[0] // patch) * (pixels.shape[1] // patch)
    covered = np.vstack([np.zeros((1, patches), bool), np.eye(patches, dtype=bool)])
    scores = score(cover(pixels, filled(pixels, "mean", patch=patch), covered, patch=patch))
    fall: npt.NDArray[np.float32] = (scores[0] - scores[1:]).astype(np.float32)
    return fall
