"""What a network answers to an image parts of which are covered, as the service covers them."""

import numpy as np

from app.bundle import Manifest
from app.inference.engine import Engine, Outputs, Pixels
from app.maps.measured import Masks
from app.maps.occlusion import filled, occluded

BATCH = 8


def under_masks(engine: Engine, manifest: Manifest, pixels: Pixels, masks: Masks) -> Outputs:
    """Outputs of the lean graph, each (n, ...), for the image under each of n masks."""
    covered, fills = masks.covered, masks.fills
    patch = manifest.tokens.patch
    under = {fill: filled(pixels, fill, patch=patch) for fill in set(fills)}
    runs = []
    for start in range(0, len(covered), BATCH):
        part = slice(start, start + BATCH)
        images = occluded(pixels, np.stack([under[fill] for fill in fills[part]]), covered[part], patch=patch)
        runs.append(engine.run("classify", images))
    return {name: np.concatenate([run[name] for run in runs]) for name in runs[0]}
