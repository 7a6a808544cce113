from io import BytesIO

import numpy as np
from PIL import Image

from export.pictures.canvas import Canvas


def drawn(canvas: Canvas) -> np.ndarray:
    return np.asarray(Image.open(BytesIO(canvas.png()))).astype(int)


def test_pixels_are_squares_with_sharp_edges():
    canvas = Canvas(30, 20)
    pixels = np.random.default_rng(0).integers(0, 256, (2, 3, 3), dtype=np.uint8)
    canvas.picture(4, 5, Image.fromarray(pixels), zoom=6)
    sheet = drawn(canvas)
    assert sheet.shape == (20, 30, 3)
    assert (sheet[5:17, 4:22] == pixels.repeat(6, axis=0).repeat(6, axis=1)).all()
    sheet[5:17, 4:22] = 255
    assert (sheet == 255).all()
