import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from app.drawing.colorbar import with_colorbar
from app.drawing.colors import Limits, paint

VALUES = np.array([[0.0, 0.5, 1.0]], np.float32)


@given(st.integers(1, 80), st.integers(1, 80), st.integers(10, 20), st.sampled_from(["RGB", "RGBA"]))
def test_the_map_stays_whole_and_in_its_place(width, height, size, mode):
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (height, width, len(mode)), np.uint8)
    sheet = with_colorbar(Image.fromarray(pixels), Limits(0, 1), "viridis", VALUES, size=size)
    assert sheet.mode == mode
    assert (np.asarray(sheet)[:height, :width] == pixels).all()
    assert sheet.width >= width + 3 * size
    assert sheet.height >= max(height, 3 * size)


@pytest.mark.parametrize("colormap", ["viridis", "rdbu"])
def test_the_bar_runs_through_exactly_the_colours_of_the_map(colormap):
    bar = np.asarray(with_colorbar(Image.new("RGB", (20, 600)), Limits(-1, 1), colormap, VALUES, size=12))
    ramp = bar[1:-1, 20 + 12, :3]  # one column through the colours, without the frame
    painted = np.asarray(paint(np.linspace(1, 0, 256)[None], colormap))[0]
    colors, expected = (list(dict.fromkeys(map(tuple, column))) for column in (ramp, painted))
    assert colors == expected


@pytest.mark.parametrize(
    ("limits", "values", "labels"),
    [
        (Limits(0, 1), [0, 1], ["1", "0.5", "0"]),
        (Limits(-0.25, 0.25), [-0.1, 0.25], ["+0.25", "0", "-0.25"]),
        (Limits(0.25, 0.5), [0.25, 3], ["> 0.5", "0.375", "0.25"]),
        (Limits(-1, 1), [-3, 0.5], ["+1", "0", "< -1"]),
        (Limits(0.125, 0.125), [0.125, 0.125], ["0.125"]),
    ],
)
def test_the_numbers_are_the_limits_and_clipped_ends_say_so(monkeypatch, limits, values, labels):
    texts = []
    monkeypatch.setattr(ImageDraw.ImageDraw, "text", lambda self, xy, text, **_: texts.append((xy[1], text)))
    with_colorbar(Image.new("RGB", (20, 100)), limits, "viridis", np.array(values, np.float32), size=10)
    assert [text for _, text in sorted(texts)] == labels
