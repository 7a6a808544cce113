"""The tokens of an image as a client asks for them: after the final norm or of one layer, all or the patches' alone."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from app.bundle import TOKENS, Manifest, array_of
from app.errors import InvalidParameter

Which = Literal["patches", "all"]


def array_for(manifest: Manifest, layer: int | None) -> str:
    """The array of the graph of tokens: after the final norm, or the stream after block `layer`, from 1, without it.

    Raises InvalidParameter for a layer that the bundle does not have, and for a bundle without tokens.
    """
    if not manifest.arrays:
        raise InvalidParameter("This bundle has no graph that gives tokens. Export the model again to have them.")
    name = TOKENS if layer is None else array_of(layer)
    if name not in manifest.arrays:
        layers = ", ".join(map(str, manifest.layers_of_arrays)) or "no layer"
        raise InvalidParameter(f"The bundle was exported with the tokens of {layers}: --layers {layer} adds this one.")
    return name


def arranged(tokens: Sequence[npt.NDArray[np.floating]], manifest: Manifest, which: Which) -> npt.NDArray[np.float32]:
    """Tokens (T, features) of each image as one array, (images, T, features) in the order of the manifest, or without
    those before the patches (images, rows, columns, features).
    """
    rows = np.stack(list(tokens)).astype(np.float32, copy=False)
    if which == "all":
        return rows
    return rows[:, len(manifest.tokens.prefix) :].reshape(len(rows), *manifest.tokens.grid, -1)
