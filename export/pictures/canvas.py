"""A white sheet for charts: shapes and text with smooth edges, with Pillow alone."""

from functools import cache
from io import BytesIO

from PIL import Image, ImageDraw, ImageFont

INK, FAINT = (33, 37, 41), (206, 212, 218)
SCALE = 3  # everything is drawn this many times larger, then averaged down

Color = tuple[int, int, int] | tuple[int, int, int, int]  # RGB or RGBA


class Canvas:
    """Positions and lengths are pixels of the finished chart, from its upper left corner.

    Pillow's own font draws ASCII and little more; what it lacks is drawn as a box.
    """

    def __init__(self, width: int, height: int) -> None:
        self._image = Image.new("RGB", (width * SCALE, height * SCALE), "white")
        self._pen = ImageDraw.Draw(self._image, "RGBA")

    def text(self, x: float, y: float, text: str, *, size: int, anchor: str = "la", color: Color = INK) -> None:
        """`anchor` is Pillow's: the point of the text that lies at (x, y)."""
        self._pen.text((x * SCALE, y * SCALE), text, font=_font(size), fill=color, anchor=anchor)

    def upward_text(self, x: float, y: float, text: str, *, size: int) -> None:
        """Text that reads from bottom to top, its middle at (x, y)."""
        upward = ImageFont.TransposedFont(_font(size), Image.Transpose.ROTATE_90)
        _, _, width, height = upward.getbbox(text)
        self._pen.text((x * SCALE - width / 2, y * SCALE - height / 2), text, font=upward, fill=INK)

    def line(self, x0: float, y0: float, x1: float, y1: float, *, color: Color = INK) -> None:
        self._pen.line((x0 * SCALE, y0 * SCALE, x1 * SCALE, y1 * SCALE), fill=color, width=SCALE)

    def dot(self, x: float, y: float, *, radius: float, fill: Color | None, outline: Color) -> None:
        edges = (x - radius, y - radius, x + radius, y + radius)
        self._pen.ellipse([edge * SCALE for edge in edges], fill=fill, outline=outline, width=round(1.5 * SCALE))

    def picture(self, x: int, y: int, image: Image.Image, *, zoom: int = 1) -> None:
        """Draw each pixel of an RGB image as a square of `zoom` pixels."""
        larger = (image.width * zoom * SCALE, image.height * zoom * SCALE)
        self._image.paste(image.resize(larger, Image.Resampling.NEAREST), (x * SCALE, y * SCALE))

    def png(self) -> bytes:
        out = BytesIO()
        self._image.reduce(SCALE).save(out, "PNG")  # a third of what app/drawing/png.py makes of so many edges
        return out.getvalue()


def text_width(text: str, *, size: int) -> float:
    return _font(size).getlength(text) / SCALE


@cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(size * SCALE)
    assert isinstance(font, ImageFont.FreeTypeFont), "Pillow without FreeType has no font of another size"
    return font
