"""Images with patches under a fill, as if they were not there. Arrays only."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageFilter

Fill = Literal["mean", "black", "gray", "blur"]
GRAY = 128


def filled(pixels: npt.NDArray[np.uint8], fill: Fill, *, patch: int) -> npt.NDArray[np.uint8]:
    """What covers the image (height, width, 3): its mean colour, black, mid-gray, or the image itself blurred.

    The blur is a Gaussian whose standard deviation is one patch of `patch` pixels.
    """
    if fill == "blur":
        return np.asarray(Image.fromarray(pixels).filter(ImageFilter.GaussianBlur(patch)))
    colors: dict[str, Any] = {"mean": np.rint(pixels.mean(axis=(0, 1))), "black": 0, "gray": GRAY}
    return np.full_like(pixels, colors[fill])


def cover(
    pixels: npt.NDArray[np.uint8], filled: npt.NDArray[np.uint8], covered: npt.NDArray[np.bool_], *, patch: int
) -> npt.NDArray[np.uint8]:
    """Images (n, height, width, 3) that show `filled` in place of `pixels` where patches are `covered` (n, patches)."""
    rows, columns = pixels.shape[0] // patch, pixels.shape[1] // patch
    mask = covered.reshape(-1, rows, columns, 1).repeat(patch, axis=1).repeat(patch, axis=2)
    return np.where(mask, filled, pixels)
