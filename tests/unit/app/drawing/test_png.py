"""app/drawing/png.py: what it writes is what another library reads."""

from io import BytesIO

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from app.drawing.png import encode


@given(st.integers(1, 9), st.integers(1, 9), st.sampled_from([3, 4]), st.integers(0, 2**32 - 1))
def test_every_pixel_comes_back(width, height, channels, seed):
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, channels), np.uint8)
    png = encode(Image.fromarray(pixels))
    Image.open(BytesIO(png)).verify()
    image = Image.open(BytesIO(png))
    assert image.mode == ("RGB", "RGBA")[channels - 3]
    assert (np.asarray(image) == pixels).all()


def test_a_plain_image_takes_few_bytes():
    assert len(encode(Image.new("RGB", (512, 512), "teal"))) < 5000
