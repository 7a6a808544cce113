"""app/drawing/wall.py: every head in its cell, in the colours of one scale."""

from io import BytesIO

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from app.drawing.colors import Limits, paint
from app.drawing.heatmap import Style
from app.drawing.wall import GAP, LARGEST_CELL, SMALLEST_CELL, WIDTH, corner, draw_wall, lay_out
from tests.support.records import make_prepared


def drawn(maps, image=None, **changes) -> np.ndarray:
    style = Style(**{"overlay": False, "alpha": 0.25, "interpolation": "nearest", **changes})
    png = draw_wall(maps.astype(np.float32), image or make_prepared(), style, Limits(0, 1))
    return np.asarray(Image.open(BytesIO(png)))


def test_each_map_lies_in_its_cell_patch_by_patch():
    maps = np.random.default_rng(0).random((2, 3, 3, 5))
    image, sheet = drawn(maps), lay_out(2, 3, (3, 5))
    assert image.shape == (sheet.size[1], sheet.size[0], 3)
    side = sheet.cell[0] // 5
    for layer, head in np.ndindex(2, 3):
        left, top = corner(sheet, layer, head)
        cell = image[top : top + sheet.cell[1], left : left + sheet.cell[0]]
        colors = np.asarray(paint(maps[layer, head].astype(np.float32), "viridis"))
        assert (cell == colors.repeat(side, axis=0).repeat(side, axis=1)).all()


def test_overlay_blends_with_what_the_network_saw():
    seen = make_prepared(pixels=np.full((24, 40, 3), 200, np.uint8))
    left, top = lay_out(1, 1, (3, 5)).origin
    blended = drawn(np.ones((1, 1, 3, 5)), seen, overlay=True)[top + 5, left + 5]
    assert np.abs(blended - (0.75 * 200 + 0.25 * np.array([253, 231, 36]))).max() <= 1.5


@given(st.integers(1, 48), st.integers(1, 32), st.integers(1, 64), st.integers(1, 64))
def test_cells_are_as_large_as_the_width_of_the_sheet_allows(layers, heads, rows, columns):
    sheet = lay_out(layers, heads, (rows, columns))
    width, height = sheet.cell
    assert SMALLEST_CELL <= width <= LARGEST_CELL
    assert sheet.size[0] <= WIDTH or width - columns < SMALLEST_CELL
    assert width + columns > LARGEST_CELL or sheet.size[0] + heads * columns > WIDTH  # no cell could be larger
    assert width % columns == 0 or width < columns
    assert abs(height - width * rows / columns) <= 0.5
    last = corner(sheet, layers - 1, heads - 1)
    assert (last[0] + width + GAP, last[1] + height + GAP) == sheet.size
