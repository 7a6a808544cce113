"""How far patches read, by layer and head, over the pictures that an export is checked on (paper, Fig. 7 right)."""

import numpy as np

from app.bundle import ImageSpec
from app.drawing.chart import draw_distance
from app.images.preprocess import preprocess
from app.inference.contract import Engine
from app.maps.distance import DISTANCE, AttentionDistance, MeanDistance
from export.pictures import reference_pictures
from export.portrait import Portrait

PICTURES, BATCH = 12, 4


def reference_distance(engine: Engine, spec: ImageSpec, *, patch_size: int) -> Portrait:
    """The mean of what the explaining graph says of each picture."""
    pixels = np.stack([preprocess(picture, spec.framing)[0] for picture in reference_pictures(PICTURES)])
    found = np.concatenate([engine.run("explain", batch)["distance"] for batch in np.split(pixels, PICTURES // BATCH)])
    mean = MeanDistance(pictures=PICTURES, distance=found.mean(axis=0, dtype=np.float64).tolist())
    numbers = AttentionDistance(reference=mean, served=None, patch_size=patch_size)
    title = "Mean attention distance by layer and head"
    return Portrait(name=DISTANCE, title=title, png=draw_distance(title, numbers), numbers=numbers.model_dump())
