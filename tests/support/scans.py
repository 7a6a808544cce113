"""Real scans to learn from: scikit-learn's handwritten digits, 1,797 of 8 x 8 pixels, in its package."""

from typing import Any

import numpy as np
import torch
from PIL import Image

from model.fit.samples import Samples

HELD_OUT = 360
GREYS = 16


def digits(side: int) -> tuple[Samples, Samples]:
    """(train, held out) with images of `side` pixels."""
    from sklearn.datasets import load_digits  # takes most of a second, which only who learns from them waits

    scans = load_digits()
    order = np.random.default_rng(0).permutation(len(scans.target))
    held_out, train = order[:HELD_OUT], order[HELD_OUT:]
    return _samples(scans, train, side), _samples(scans, held_out, side)


def _samples(scans: Any, rows: np.ndarray, side: int) -> Samples:
    grey = (scans.images[rows] * 255 / GREYS).round().astype(np.uint8)
    pixels = np.stack([np.asarray(Image.fromarray(scan).convert("RGB").resize((side, side))) for scan in grey])
    return Samples(pixels=torch.from_numpy(pixels), classes=torch.from_numpy(scans.target[rows].astype(np.int64)))
