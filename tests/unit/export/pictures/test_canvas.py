from io import BytesIO

import numpy as np
from PIL import Image

from export.pictures.canvas import INK, Canvas, text_width


def drawn(canvas: Canvas) -> np.ndarray:
    return np.asarray(Image.open(BytesIO(canvas.png()))).astype(int)


def inked(canvas: Canvas) -> tuple[int, int, int, int]:
    """Left, top, right, bottom of what is not white."""
    rows, columns = np.nonzero((drawn(canvas) < 128).all(axis=-1))
    return columns.min(), rows.min(), columns.max() + 1, rows.max() + 1


def test_pixels_are_squares_with_sharp_edges():
    canvas = Canvas(30, 20)
    pixels = np.random.default_rng(0).integers(0, 256, (2, 3, 3), dtype=np.uint8)
    canvas.picture(4, 5, Image.fromarray(pixels), zoom=6)
    sheet = drawn(canvas)
    assert sheet.shape == (20, 30, 3)
    assert (sheet[5:17, 4:22] == pixels.repeat(6, axis=0).repeat(6, axis=1)).all()
    sheet[5:17, 4:22] = 255
    assert (sheet == 255).all()


def test_a_dot_has_its_place_and_a_hollow_middle():
    canvas = Canvas(40, 40)
    canvas.dot(20, 10, radius=6, fill=None, outline=INK)
    left, top, right, bottom = inked(canvas)
    assert np.abs([left - 14, top - 4, right - 26, bottom - 16]).max() <= 1
    assert (drawn(canvas)[10, 20] == 255).all()


def test_text_is_as_wide_as_it_says():
    canvas = Canvas(200, 40)
    canvas.text(100, 20, "12 pictures", size=16, anchor="mm")
    left, _, right, _ = inked(canvas)
    assert abs(right - left - text_width("12 pictures", size=16)) <= 3
    assert abs((left + right) / 2 - 100) <= 1


def test_upward_text_is_turned_about_its_middle_and_begins_below():
    canvas = Canvas(60, 200)
    canvas.upward_text(30, 100, "WWW.............", size=16)
    left, top, right, bottom = inked(canvas)
    assert bottom - top > 5 * (right - left)
    assert abs((top + bottom) / 2 - 100) <= 2
    assert abs((left + right) / 2 - 30) <= 4
    rows, _ = np.nonzero((drawn(canvas) < 128).all(axis=-1))
    assert np.median(rows) > 100
