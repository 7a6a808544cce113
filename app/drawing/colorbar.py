"""The colour bar beside a picture: which colour stands for which number."""

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from app.drawing.colormaps import Colormap, paint
from app.drawing.scale import Limits

PAPER, INK = (255, 255, 255), (51, 51, 51)
TICK = 3  # pixels

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont


def with_colorbar(
    canvas: Image.Image, limits: Limits, colormap: Colormap, values: npt.NDArray[np.float32], *, size: int
) -> Image.Image:
    """`canvas`, left and top where it was, and to the right of it the colours with the numbers they stand for.

    An end of the bar that some of `values` lie beyond says so with ≤ or ≥. `size` is that of the text, in pixels; a
    canvas too low for three lines of it grows at its foot.
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
        _write(draw, (text, middle), label, font)
    return sheet


def _labels(limits: Limits, values: npt.NDArray[np.float32]) -> list[tuple[float, str]]:
    """Where down the bar, 0 to 1, stands what."""
    number = "{:+.3g}".format if limits.low < 0 else "{:.3g}".format
    if limits.low == limits.high:
        return [(0.5, number(limits.low))]
    over = "≥ " if values.max() > limits.high else ""
    under = "≤ " if values.min() < limits.low else ""
    middle = "0" if limits.low < 0 else number((limits.low + limits.high) / 2)
    return [(0.0, over + number(limits.high)), (0.5, middle), (1.0, under + number(limits.low))]


def _write(draw: ImageDraw.ImageDraw, place: tuple[int, int], label: str, font: Font) -> None:
    """Text from `place`, its left and middle. Pillow's own font has no ≤ and no ≥: they are underlined here."""
    plain = label.replace("≤", "<").replace("≥", ">")
    draw.text(place, plain, fill=INK, font=font, anchor="lm")
    if plain != label:
        draw.text(place, "_", fill=INK, font=font, anchor="lm")
