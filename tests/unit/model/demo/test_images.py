"""`python -m model.demo images`: held-out images in folders of their labels."""

import sys

import numpy as np
from PIL import Image

from model.demo.__main__ import main
from model.shapes import LABELS, held_out


def test_images_are_those_held_out_under_their_labels(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["python -m model.demo", "images", str(tmp_path / "shapes"), "--count", "20"])
    main()
    files = sorted((tmp_path / "shapes").rglob("*.png"), key=lambda path: path.name)
    assert len(files) == 20
    for file, sample in zip(files, held_out(20), strict=True):
        assert file.parent.name == LABELS[sample.label]
        assert (np.asarray(Image.open(file)) == sample.pixels).all()
