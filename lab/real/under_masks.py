"""What a network answers to an image parts of which are covered, as the service covers them."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from app.bundle import Manifest
from app.inference.engine import Engine, Outputs, Pixels
from app.maps.occlusion import Fill, filled, occluded

BATCH = 8


def under_masks(
    engine: Engine, manifest: Manifest, pixels: Pixels, covered: npt.NDArray[np.bool_], fills: Sequence[Fill]
) -> Outputs:
    """Outputs of the lean graph, each (n, ...), for the image under each row of `covered` (n, patches)."""
    patch = manifest.tokens.patch
    under = {fill: filled(pixels, fill, patch=patch) for fill in set(fills)}
    runs = []
    for start in range(0, len(covered), BATCH):
        part = slice(start, start + BATCH)
        images = occluded(pixels, np.stack([under[fill] for fill in fills[part]]), covered[part], patch=patch)
        runs.append(engine.run("classify", images))
    return {name: np.concatenate([run[name] for run in runs]) for name in runs[0]}
