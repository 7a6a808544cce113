"""The colour bar beside a map: which colour stands for which number."""

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from app.drawing.colors import Colormap, Limits, paint

PAPER, INK = (255, 255, 255), (51, 51, 51)
TICK = 3  # pixels


def with_colorbar(
    canvas: Image.Image, limits: Limits, colormap: Colormap, values: npt.NDArray[np.float32], *, size: int
) -> Image.Image:
    """`canvas` at the upper left, and to the right of it the colours with the numbers they stand for.

    An end of the bar has `<` or `>` before its number where some of `values` lie beyond it. `size` is the size of the
    text in pixels. A canvas too low for three lines of text grows at the bottom.
    """
    font = ImageFont.load_default(size=size)
    labels = _labels(limits, values)
    height = max(canvas.height, round(size * 1.3 * len(labels)))
    bar = (canvas.width + size * 2 // 3, 1, canvas.width + size * 5 // 3, height - 1)  # left, top, right, bottom
    text = bar[2] + 2 * TICK
    width = text + round(max(font.getlength(label) for _, label in labels)) + size * 2 // 3

    sheet = Image.new(canvas.mode, (width, height), PAPER)
    sheet.paste(canvas)
    draw = ImageDraw.Draw(sheet)
    ramp = limits.unit(np.linspace(limits.high, limits.low, bar[3] - bar[1]))
    sheet.paste(paint(ramp[:, None], colormap).resize((bar[2] - bar[0], len(ramp))), bar[:2])
    draw.rectangle((bar[0] - 1, bar[1] - 1, bar[2], bar[3]), outline=INK)
    for part, label in labels:
        y = bar[1] + round(part * (bar[3] - bar[1] - 1))
        draw.line((bar[2], y, bar[2] + TICK, y), fill=INK)
        middle = min(max(y, round(size * 0.6)), height - round(size * 0.6))
        draw.text((text, middle), label, fill=INK, font=font, anchor="lm")
    return sheet


def _labels(limits: Limits, values: npt.NDArray[np.float32]) -> list[tuple[float, str]]:
    """Each label and its place down the bar, 0 to 1."""
    number = "{:+.3g}".format if limits.signed else "{:.3g}".format
    if limits.low == limits.high:
        return [(0.5, number(limits.low))]
    over = "> " if values.max() > limits.high else ""
    under = "< " if values.min() < limits.low else ""
    middle = "0" if limits.signed else number((limits.low + limits.high) / 2)
    return [(0.0, over + number(limits.high)), (0.5, middle), (1.0, under + number(limits.low))]
