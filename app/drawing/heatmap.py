"""Draws a map where it belongs: on the part of the upright image that the network saw."""

from io import BytesIO
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile
from pydantic import BaseModel, ConfigDict, Field

from app.drawing.colorbar import with_colorbar
from app.drawing.colors import Colormap, Limits, paint
from app.drawing.contour import outline, smallest_holding
from app.drawing.png import encode
from app.images.preparer import THUMBNAIL_PX
from app.images.preprocess import PreprocessedImage

Interpolation = Literal["nearest", "bilinear", "bicubic"]

RESAMPLING = {
    "nearest": Image.Resampling.BOX,  # the nearest patch; where there are fewer pixels than patches, their mean
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
}
LINES = 36  # of text in the height of a canvas
SMALLEST_FONT = 10  # pixels
OUTSIDE_BRIGHTNESS = 0.45  # of the image around the crop, which the network did not see
PALING = 0.8  # of the image under a map that fades, in parts of the opacity: its own yellow would pass for the map's
SIGNED_PALING = 1.0  # as would its red and blue, which mean for and against


class Style(BaseModel):
    """How a map looks; changes no number."""

    model_config = ConfigDict(frozen=True)

    overlay: Annotated[bool, Field(description="Draw the map over the image")] = True
    alpha: Annotated[float, Field(ge=0, le=1, description="Opacity of the map over the image")] = 0.8
    colormap: Annotated[Colormap | None, Field(description="Default: viridis; rdbu for evidence")] = None
    interpolation: Annotated[
        Interpolation, Field(description="How patches are enlarged; nearest shows them as squares")
    ] = "bilinear"
    colorbar: Annotated[bool, Field(description="Draw a colour bar with the raw numbers at the right")] = False
    threshold: Annotated[
        float | None, Field(gt=0, lt=1, description="Outline the fewest patches that hold this share of the map")
    ] = None
    fade: Annotated[bool, Field(description="Let the image show through the more, the weaker the map")] = True


def draw(
    values: npt.NDArray[np.float32],
    image: PreprocessedImage,
    style: Style,
    limits: Limits,
    spread: npt.NDArray[np.float32] | None = None,
) -> bytes:
    """PNG of the map (rows, columns), with the first colour at the lower limit and the last at the upper one.

    With overlay the map is blended over the image, which is pale under a map that fades, and else grey under a signed
    one, whose colours mean for and against. A map that fades is gone where its numbers are within their `spread` (rows,
    columns). Without overlay the colours stand alone, and what the network did not see is transparent.
    """
    thumbnail = _thumbnail(image)
    place = _place(image, thumbnail.size)
    left, top, right, bottom = place
    size = (right - left, bottom - top)
    unit = _enlarge(limits.unit(values), size, style)
    colors = paint(unit, colormap(style, limits))
    if style.overlay:
        canvas = thumbnail.convert("RGB")
        if limits.signed or style.fade:
            grey = canvas.convert("L").convert("RGB")
            paling = SIGNED_PALING if limits.signed else PALING
            canvas = Image.blend(grey, canvas, 1 - paling * style.alpha if style.fade else 0)
        if style.fade:
            strength = np.abs(2 * unit - 1) if limits.signed else unit
            if spread is not None:
                strength = strength * _enlarge((np.abs(values) > spread).astype(np.float32), size, style)
            opacity = Image.fromarray(np.rint(255 * style.alpha * strength).astype(np.uint8))
            lit = Image.composite(colors, canvas.crop(place), opacity)
        else:
            lit = Image.blend(canvas.crop(place), colors, style.alpha)
        if lit.size != canvas.size:
            canvas = canvas.point(lambda value: value * OUTSIDE_BRIGHTNESS)
        canvas.paste(lit, (left, top))
    else:
        canvas = Image.new("RGBA", thumbnail.size)
        canvas.paste(colors, (left, top))
    if style.threshold is not None:
        outline(canvas, smallest_holding(values, style.threshold), place)
    if style.colorbar:
        canvas = with_colorbar(
            canvas, limits, colormap(style, limits), values, size=max(canvas.height // LINES, SMALLEST_FONT)
        )
    return encode(canvas)


def colorize(values: npt.NDArray[np.float32], size: tuple[int, int], style: Style, limits: Limits) -> Image.Image:
    """A map alone as RGB, `size` (width, height). The number of a patch is at the patch's centre."""
    return paint(_enlarge(limits.unit(values), size, style), colormap(style, limits))


def _thumbnail(image: PreprocessedImage) -> Image.Image:
    """Opened with the one parser that it needs: a process that has decoded hostile bytes has made it."""
    thumbnail = JpegImageFile(BytesIO(image.thumbnail))
    if max(thumbnail.size) > THUMBNAIL_PX:
        raise ValueError(f"a thumbnail of {thumbnail.width}x{thumbnail.height} pixels")
    return thumbnail


def _enlarge(unit: npt.NDArray[np.float32], size: tuple[int, int], style: Style) -> npt.NDArray[np.float32]:
    """Numbers from 0 to 1 (rows, columns), `size` (width, height), as an array (height, width)."""
    smooth = Image.fromarray(unit).resize(size, RESAMPLING[style.interpolation])
    enlarged: npt.NDArray[np.float32] = np.asarray(smooth).clip(0, 1)  # bicubic overshoots
    return enlarged


def colormap(style: Style, limits: Limits) -> Colormap:
    """The colormap asked for, or the one that suits the numbers."""
    return style.colormap or ("rdbu" if limits.signed else "viridis")


def _place(image: PreprocessedImage, size: tuple[int, int]) -> tuple[int, int, int, int]:
    """The crop box in pixels of a canvas of `size`, at least one pixel wide and high."""
    x, y = size[0] / image.size[0], size[1] / image.size[1]
    left, top = min(round(image.box.left * x), size[0] - 1), min(round(image.box.top * y), size[1] - 1)
    return left, top, max(round(image.box.right * x), left + 1), max(round(image.box.bottom * y), top + 1)
