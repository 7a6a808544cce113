"""Untrusted bytes to a checked, upright RGB picture. The type is sniffed, never believed; limits come before pixels.

Knows nothing of HTTP, and imports little: it runs in processes of their own.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO

from PIL import BmpImagePlugin, GifImagePlugin, Image, ImageFile, JpegImagePlugin, PngImagePlugin, TiffImagePlugin
from PIL import WebPImagePlugin as WebpImagePlugin

from app.images.metadata import read_jpeg

# Parsers by name of the sniffed type. No other is ever asked, and Pillow's own search for one is not used: its JPEG
# would become an MPO, which reads metadata.
PARSERS: dict[str, type[ImageFile.ImageFile]] = {
    "JPEG": JpegImagePlugin.JpegImageFile,
    "PNG": PngImagePlugin.PngImageFile,
    "WebP": WebpImagePlugin.WebPImageFile,
    "GIF": GifImagePlugin.GifImageFile,
    "BMP": BmpImagePlugin.BmpImageFile,
    "TIFF": TiffImagePlugin.TiffImageFile,
}
MAX_SIDE = 16384  # pixels; WebP's own limit is 16383
MAX_SCANS = 100  # of a JPEG; encoders make ten


class Refused(Exception):
    """A picture that is not taken; `detail` is a sentence for its sender."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class NotAccepted(Refused):
    """Not one of the accepted types."""


class Unusable(Refused):
    """One of them, but it cannot be decoded or is over a limit."""


class Decoder:
    """Opens one image at a time; holds nothing but the limits."""

    def __init__(self, *, max_pixels: int, max_aspect_ratio: float) -> None:
        self.max_pixels = max_pixels
        self.max_aspect_ratio = max_aspect_ratio

    @contextmanager
    def opened(self, data: bytes) -> Iterator[tuple[Image.Image, str]]:
        """A picture within the limits, its pixels not yet decoded, and the name of its type.

        Raises NotAccepted for anything but an accepted type, Unusable for one that is over a limit or that cannot be
        decoded inside the context.
        """
        if not data:
            raise Unusable("The image is empty.")
        name = sniff(data)
        exif = b""
        if name == "JPEG":
            jpeg = read_jpeg(data, max_scans=MAX_SCANS)
            if jpeg is None:
                raise Unusable(f"The JPEG has more than {MAX_SCANS} scans, or nothing but markers.")
            data, exif = jpeg.bare, jpeg.exif
        try:
            with PARSERS[name](BytesIO(data)) as image:
                self._check_size(image.size)
                if exif:
                    image.info["exif"] = exif
                yield image, name
        except Refused:
            raise
        except Image.DecompressionBombError:
            raise self._too_many_pixels() from None
        except Exception:  # Pillow's plugins raise nearly every built-in exception on broken files
            raise Unusable(f"This looks like {name} but cannot be decoded.") from None

    def _check_size(self, size: tuple[int, int]) -> None:
        width, height = size
        if width * height > self.max_pixels:
            raise self._too_many_pixels()
        if max(size) > MAX_SIDE:
            raise Unusable(f"A side of the image is longer than {MAX_SIDE} pixels.")
        if max(size) > self.max_aspect_ratio * min(size):
            raise Unusable(f"The image's long side is over {self.max_aspect_ratio:g} times its short side.")

    def _too_many_pixels(self) -> Unusable:
        return Unusable(f"The image has more than {self.max_pixels} pixels.")


def sniff(data: bytes) -> str:
    """Name of the image type by its first bytes. Raises NotAccepted."""
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
    raise NotAccepted(f"The body is not an image of an accepted type: {', '.join(PARSERS)}.")
