"""app/images/colors.py against littleCMS, which Pillow has and the service never calls."""

import numpy as np
from PIL import Image, ImageCms

from app.images.colors import srgb


def test_colours_are_those_that_littlecms_made_it_of():
    values = np.linspace(0, 255, 9).round().astype(np.uint8)
    colors = np.stack(np.meshgrid(values, values, values), -1).reshape(27, 27, 3)
    profiles = ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB")
    to_lab = ImageCms.buildTransform(*profiles, "RGB", "LAB")
    lab = np.asarray(ImageCms.applyTransform(Image.fromarray(colors), to_lab))
    error = np.abs(srgb(lab).astype(int) - colors)
    assert error.mean() < 0.7  # eight bits of each do not hold every colour: dark saturated ones are far apart
    assert np.percentile(error, 99) <= 5


def test_gray_has_no_colour():
    lab = np.stack([np.arange(256), np.zeros(256), np.zeros(256)], -1).astype(np.uint8)
    gray = srgb(lab).astype(int)
    assert np.ptp(gray, axis=1).max() <= 1
    assert gray[0].tolist() == [0, 0, 0]
    assert gray[255].min() >= 254
