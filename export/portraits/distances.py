"""How far away patches read, by layer and head, over some of the reference images (paper, Fig. 7 right)."""

import numpy as np

from app.bundle import ImageSpec
from app.drawing.chart import draw_distance
from app.inference.contract import Engine
from app.maps.distance import DISTANCE, AttentionDistance, MeanDistance
from export.images import reference_pixels
from export.portraits.portrait import Portrait

IMAGES, BATCH = 12, 4


def reference_distance(engine: Engine, spec: ImageSpec, *, patch_size: int) -> Portrait:
    """The mean of what the explaining graph gives for each image."""
    batches = np.split(reference_pixels(spec, IMAGES), IMAGES // BATCH)
    found = np.concatenate([engine.run("explain", batch)["distance"] for batch in batches])
    mean = MeanDistance(pictures=IMAGES, distance=found.mean(axis=0, dtype=np.float64).tolist())
    numbers = AttentionDistance(reference=mean, served=None, patch_size=patch_size)
    title = "Mean attention distance by layer and head"
    return Portrait(name=DISTANCE, title=title, png=draw_distance(title, numbers), numbers=numbers.model_dump())
