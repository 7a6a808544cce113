"""How much of a map's range of colours its hottest patches take for themselves."""

import numpy as np
import numpy.typing as npt

from lab.benchmarks.record import Rows
from lab.real.bundles import engine_of, outputs, pixels
from lab.real.data import Data

HOTTEST = 5
PREFIX = 1  # the class token


def measure(data: Data) -> Rows:
    stamps = pixels(data, data.stamps["test"])
    photos = pixels(data, sorted(data.photos.iterdir()))
    with engine_of(data, "fp32") as engine:
        found = {
            name: outputs(engine, "explain", images) for name, images in (("photographs", photos), ("stamps", stamps))
        }
    rollout = {images: explained["rollout"] for images, explained in found.items()}
    last = {images: explained["attention"][:, -1].mean(1) for images, explained in found.items()}
    return [
        {"map": name, **{f"share, {images}": _median(tokens) for images, tokens in of_map.items()}}
        for name, of_map in (("rollout", rollout), ("last layer, mean over heads", last))
    ]


def _median(tokens: npt.NDArray[np.floating]) -> float:
    """Of the share of the range from the coldest to the hottest patch that lies above all but HOTTEST of them."""
    ordered = np.sort(tokens[:, PREFIX:], axis=1)
    shares = (ordered[:, -1] - ordered[:, -1 - HOTTEST]) / (ordered[:, -1] - ordered[:, 0])
    return round(float(np.median(shares)), 2)
