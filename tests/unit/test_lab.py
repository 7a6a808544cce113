"""app/lab.py against littleCMS, which Pillow has and the service never calls."""

import numpy as np
from PIL import Image, ImageCms

from app.lab import srgb


def test_colours_are_littlecms_colours():
    values = np.linspace(0, 255, 9).round().astype(np.uint8)
    colors = np.stack(np.meshgrid(values, values, values), -1).reshape(27, 27, 3)
    profiles = ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB")
    to_lab = ImageCms.buildTransform(*profiles, "RGB", "LAB")
    lab = ImageCms.applyTransform(Image.fromarray(colors), to_lab)
    back = ImageCms.applyTransform(lab, ImageCms.buildTransform(*profiles[::-1], "LAB", "RGB"))
    error = np.abs(srgb(np.asarray(lab)).astype(int) - np.asarray(back))
    assert error.mean() < 0.5
    assert error.max() <= 3


def test_gray_has_no_colour():
    lab = np.stack([np.arange(256), np.zeros(256), np.zeros(256)], -1).astype(np.uint8)
    found = srgb(lab).astype(int)
    assert np.ptp(found, axis=1).max() <= 1
    assert found[0].tolist() == [0, 0, 0]
    assert found[255].min() >= 254
