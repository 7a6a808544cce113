"""A decoded image as a person sees it: upright, RGB, transparency on white, deep gray scaled and not clipped."""

from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageCms

from app.images.decode import AvifImage, orientation

WHITE = (255, 255, 255)
ROWS = 64  # converted at a time, so that an image is never in memory as floats as a whole

# TIFF 6.0
_BITS_PER_SAMPLE = 258
_PHOTOMETRIC = 262
_SAMPLE_FORMAT = 339
_WHITE_IS_ZERO = 0
_SIGNED = 2

_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def upright_rgb(image: Image.Image) -> Image.Image:
    """The first frame in RGB: EXIF orientation applied, transparency on white, 16 bits scaled.

    Colour profiles are ignored, as they were when the networks were trained.
    """
    raw_mode = _raw_mode(image)
    image.load()
    # A text of a PNG may be called as what is read here: transparency, exif.
    image.info = {name: value for name, value in image.info.items() if not isinstance(value, str)}
    turn = _TURNS.get(_orientation(image))
    rgb = _to_rgb(image, raw_mode)
    if turn is not None:
        rgb = rgb.transpose(turn)
    rgb.info = {}  # Pillow would write comments, profiles and more from it into a saved file
    return rgb


def _raw_mode(image: Image.Image) -> str:
    """Pillow's name for the layout of samples in the file. Unlike the mode, it tells how many bits they had."""
    tile: Any = getattr(image, "tile", None)
    arguments = tile[0].args if tile else ""
    return arguments if isinstance(arguments, str) else str(arguments[0]) if arguments else ""


def _orientation(image: Image.Image) -> int:
    if hasattr(image, "tag_v2"):  # a TIFF, which Pillow has already turned
        return 1
    if isinstance(image, AvifImage):
        return image.orientation
    return orientation(image.info.get("exif", b""))


def _to_rgb(image: Image.Image, raw_mode: str) -> Image.Image:
    if image.mode == "RGB" and "transparency" not in image.info:
        return image
    if image.mode.startswith(("I", "F")):
        return _from_deep_gray(image)
    if image.mode == "LAB":
        return _from_lab(image)
    if image.has_transparency_data:
        return _on_white(image, raw_mode)
    return image.convert("RGB")


def _on_white(image: Image.Image, raw_mode: str) -> Image.Image:
    transparent = image.info.get("transparency")
    if raw_mode in ("L;2", "L;4") and isinstance(transparent, int):  # Pillow leaves it in the depth of the file
        image.info["transparency"] = transparent * (85 if raw_mode == "L;2" else 17)
    elif raw_mode.startswith("RGB;16") and isinstance(transparent, tuple):
        image.info["transparency"] = tuple(value >> 8 for value in transparent)
    rgba = (image.convert("LA") if image.mode == "La" else image).convert("RGBA")
    canvas = Image.new("RGB", image.size, WHITE)
    canvas.paste(rgba, mask=rgba)
    return canvas


def _from_deep_gray(image: Image.Image) -> Image.Image:
    """16-bit, 32-bit and float gray. Pillow's own conversion would clip it instead of scaling it."""
    tags = getattr(image, "tag_v2", {})
    bits = (*np.atleast_1d(tags.get(_BITS_PER_SAMPLE, 16)), 16)[0]
    unsigned = image.mode == "I" and bits == 32 and _SIGNED not in np.atleast_1d(tags.get(_SAMPLE_FORMAT, 1))
    full_scale = _float_scale(image) if image.mode == "F" else float(2 ** min(int(bits), 16) - 1)
    inverted = tags.get(_PHOTOMETRIC) == _WHITE_IS_ZERO
    transparent = image.info.get("transparency")

    def gray(values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
        as_stated = values.view(np.uint32) if unsigned else values  # Pillow reads these as signed
        numbers = np.nan_to_num(as_stated.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
        scaled = np.clip(np.rint(numbers * (255.0 / full_scale)), 0, 255).astype(np.uint8)
        if inverted:
            scaled = 255 - scaled
        if transparent is not None:
            scaled[values == transparent] = 255
        return scaled

    return Image.fromarray(np.concatenate([gray(rows) for rows in _strips(image)])).convert("RGB")


def _from_lab(image: Image.Image) -> Image.Image:
    """CIELAB of a TIFF: 8 bits, D50."""
    lab, srgb = ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB")
    exact = ImageCms.Flags.NOOPTIMIZE  # the table that would take the place of the formulas is up to 30 of 255 off
    return ImageCms.buildTransform(lab, srgb, "LAB", "RGB", flags=exact).apply(image)


def _float_scale(image: Image.Image) -> float:
    """1, or 255 if a finite value is larger than 1."""
    small = all(np.max(rows, where=np.isfinite(rows), initial=0) <= 1 for rows in _strips(image))
    return 1.0 if small else 255.0


def _strips(image: Image.Image) -> list[npt.NDArray[Any]]:
    values = np.asarray(image)
    return [values[top : top + ROWS] for top in range(0, len(values), ROWS)]
