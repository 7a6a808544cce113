"""model/shapes.py: the drawn images that the demo model learns from and every export is checked on."""

import numpy as np
import pytest

from model.shapes import LABELS, MIN_CONTRAST, draw


@pytest.mark.parametrize("label", range(len(LABELS)), ids=LABELS)
def test_each_shape_stands_out_and_lies_inside(label):
    for seed in range(5):
        image = draw(np.random.default_rng(seed), label=label)
        on, off = image.mask > 200, image.mask == 0
        assert image.label == label
        assert 0.02 < on.mean() < 0.6
        inside, outside = image.pixels[on].mean(axis=0), image.pixels[off].mean(axis=0)
        assert np.linalg.norm(inside - outside) > MIN_CONTRAST / 4
