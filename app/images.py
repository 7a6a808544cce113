"""Untrusted bytes to a checked, upright RGB picture. The type is sniffed, never believed; limits come before pixels."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO

import numpy as np
from PIL import Image

from app.errors import ServiceError, UnsupportedType, UnusableImage

WHITE = (255, 255, 255)
ACCEPTED = ("JPEG", "PNG", "WebP", "GIF", "BMP", "TIFF")


class Decoder:
    """Opens one image at a time; holds nothing but the limits, so threads may share it."""

    def __init__(self, *, max_pixels: int, max_aspect_ratio: float) -> None:
        self.max_pixels = max_pixels
        self.max_aspect_ratio = max_aspect_ratio

    @contextmanager
    def opened(self, data: bytes) -> Iterator[tuple[Image.Image, str]]:
        """A picture within the limits, its pixels not yet decoded, and the name of its format.

        Raises UnsupportedType for anything but an accepted type, UnusableImage for one that is over a limit or that
        cannot be decoded inside the context.
        """
        if not data:
            raise UnusableImage("The image is empty.")
        name = sniff(data)
        try:
            with Image.open(BytesIO(data), formats=[name.upper()]) as image:
                self._check_size(image.size)
                yield image, name
        except ServiceError:
            raise
        except Image.DecompressionBombError:
            raise self._too_many_pixels() from None
        except Exception:  # Pillow's plugins raise nearly every built-in exception on broken files
            raise UnusableImage(f"This looks like {name} but cannot be decoded.") from None

    def _check_size(self, size: tuple[int, int]) -> None:
        width, height = size
        if width * height > self.max_pixels:
            raise self._too_many_pixels()
        if max(size) > self.max_aspect_ratio * min(size):
            raise UnusableImage(f"The image's long side is over {self.max_aspect_ratio:g} times its short side.")

    def _too_many_pixels(self) -> UnusableImage:
        return UnusableImage(f"The image has more than {self.max_pixels} pixels.")


def sniff(data: bytes) -> str:
    """Name of the image type by its first bytes. Raises UnsupportedType."""
    if data.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WebP"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "GIF"
    if data.startswith((b"II*\x00", b"MM\x00*")):
        return "TIFF"
    if data.startswith(b"BM") and data[6:10] == bytes(4):
        return "BMP"
    raise UnsupportedType(f"The body is not an image of an accepted type: {', '.join(ACCEPTED)}.")


def upright_rgb(image: Image.Image) -> Image.Image:
    """The first frame in RGB, as a person sees it: EXIF orientation applied, transparency on white, 16 bits scaled."""
    orientation = _orientation(image)
    image.load()
    rgb = _to_rgb(image)
    return rgb.transpose(orientation) if orientation is not None else rgb


_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def _orientation(image: Image.Image) -> Image.Transpose | None:
    try:
        return _TURNS.get(image.getexif().get(0x0112, 1))
    except Exception:  # broken EXIF is common and says nothing about the pixels
        return None


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode == "RGB" and "transparency" not in image.info:
        return image
    if image.mode.startswith(("I", "F")):
        return _from_deep_gray(image)
    if image.has_transparency_data:
        rgba = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, (*WHITE, 255)), rgba).convert("RGB")
    return image.convert("RGB")


def _from_deep_gray(image: Image.Image) -> Image.Image:
    """16-bit, 32-bit and float gray: Pillow's own conversion would clip instead of scale."""
    values = np.asarray(image, dtype=np.float64)
    values = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
    of_floats = 1.0 if values.max() <= 1.0 else 255.0
    full_scale = of_floats if image.mode == "F" else 65535.0
    gray = np.clip(np.rint(values * (255.0 / full_scale)), 0, 255).astype(np.uint8)
    return Image.fromarray(gray).convert("RGB")
