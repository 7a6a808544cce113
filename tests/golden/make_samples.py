"""Writes the sample pictures of the page: `PYTHONPATH=. .venv/bin/python tests/golden/make_samples.py`."""

from pathlib import Path

import numpy as np
from PIL import Image

from model.shapes import LABELS, draw

SAMPLES = Path("app/page/samples")
SCENES = (
    ("star", 8, (480, 360)),
    ("heart", 5, (384, 384)),
    ("arrow", 10, (360, 450)),
    ("bolt", 6, (480, 320)),
    ("hourglass", 8, (384, 384)),
    ("crescent", 10, (384, 384)),  # the demo model takes it for an arrow: a case for "why this, not that"
)


def main() -> None:
    SAMPLES.mkdir(parents=True, exist_ok=True)
    for label, seed, size in SCENES:
        picture = draw(np.random.default_rng(seed), size=size, label=LABELS.index(label))
        Image.fromarray(picture.pixels).save(SAMPLES / f"{label}.jpg", quality=88, optimize=True)


if __name__ == "__main__":
    main()
