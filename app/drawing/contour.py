"""A line around the patches that hold most of a map."""

import numpy as np
import numpy.typing as npt
from PIL import Image

LIGHT, DARK = (255, 255, 255, 255), (0, 0, 0, 255)  # side by side they are visible on any colour

Mask = npt.NDArray[np.bool_]


def smallest_holding(values: npt.NDArray[np.float32], share: float) -> Mask:
    """The fewest patches (rows, columns) that together hold `share` (0 to 1) of the map.

    The mask of DINO's `visualize_attention.py` (arXiv 2104.14294). What is below zero in a signed map holds nothing.
    """
    mass = np.maximum(values, 0).astype(np.float64).ravel()
    order = np.argsort(-mass, kind="stable")
    held = np.cumsum(mass[order])
    fewest = int(np.searchsorted(held, share * held[-1])) + 1
    mask = np.zeros(mass.size, bool)
    mask[order[:fewest]] = True
    return (mask & (mass > 0)).reshape(values.shape)


def outline(canvas: Image.Image, patches: Mask, place: tuple[int, int, int, int]) -> None:
    """Draw a light line inside and a dark one outside the border of `patches`, whose grid lies at `place`."""
    left, top, right, bottom = place
    inside = np.zeros((canvas.height, canvas.width), bool)
    inside[top:bottom, left:right] = np.asarray(
        Image.fromarray(patches.view(np.uint8)).resize((right - left, bottom - top), Image.Resampling.NEAREST)
    )
    for line, color in (
        (inside & _grown(~inside, beyond=True), LIGHT),
        (~inside & _grown(inside, beyond=False), DARK),
    ):
        canvas.paste(color[: len(canvas.getbands())], mask=Image.fromarray(line))


def _grown(mask: Mask, *, beyond: bool) -> Mask:
    """`mask` and the eight neighbours of each of its pixels. `beyond` is the mask outside the canvas."""
    padded = np.pad(mask, 1, constant_values=beyond)
    wide = padded[:, :-2] | padded[:, 1:-1] | padded[:, 2:]
    grown: Mask = wide[:-2] | wide[1:-1] | wide[2:]
    return grown
