"""Untrusted bytes to a checked, opened image. The bytes tell the type, and limits are checked before any pixel.

Knows nothing of HTTP, and imports little: it runs in processes of its own.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any, Literal, NamedTuple

from PIL import (
    AvifImagePlugin,
    BmpImagePlugin,
    GifImagePlugin,
    Image,
    ImageFile,
    JpegImagePlugin,
    PngImagePlugin,
    TiffImagePlugin,
    _avif,
)
from PIL import WebPImagePlugin as WebpImagePlugin

from app.errors import UnsupportedType, UnusableImage
from app.images.headers import ACCEPTED, IMAGES, JPEG_BARE, JPEG_MARKER, JPEG_SCAN, what_is

AVIF_DECODER = "dav1d"
THREADS = 1  # of one AVIF, as for every other type; Pillow takes one for each core


class AvifImage(AvifImagePlugin.AvifImageFile):
    """AVIF by libavif and dav1d. Pillow's own `_open` would read all of Exif, and 0.8 MB of it take six seconds.

    Exif is not needed: only the boxes irot and imir turn an AVIF (ISO/IEC 23000-22, 7.3.6), and libavif reads those.
    """

    orientation: int  # 1 to 8, numbered as in Exif

    def _open(self) -> None:
        assert self.fp is not None
        self._decoder: Any = _avif.AvifDecoder(self.fp.read(), AVIF_DECODER, THREADS)
        self._size, self.n_frames, self._mode, _, _, self.orientation, _ = self._decoder.get_info()
        self.is_animated = self.n_frames > 1
        self.seek(0)

    def load(self) -> Any:
        access = super().load()
        self._decoder = None  # with the planes that the pixels were made from
        return access


# Pillow's own search for a parser is not used: it would try others, and it opens some JPEG files as MPO, with a parser
# that reads metadata.
PARSERS: dict[str, type[ImageFile.ImageFile]] = {
    "JPEG": JpegImagePlugin.JpegImageFile,
    "PNG": PngImagePlugin.PngImageFile,
    "WebP": WebpImagePlugin.WebPImageFile,
    "GIF": GifImagePlugin.GifImageFile,
    "BMP": BmpImagePlugin.BmpImageFile,
    "TIFF": TiffImagePlugin.TiffImageFile,
    "AVIF": AvifImage,
}
_EXIF = b"Exif\0\0"
_ORIENTATION = 0x0112  # a tag of TIFF and Exif
_SHORT = 3
_MAX_ENTRIES = 1000  # of a directory; cameras write tens
MAX_SIDE = 16384  # pixels; the limit of WebP itself is 16383
MAX_ASPECT_RATIO = 64.0
MAX_SCANS = 100  # of a JPEG; encoders write ten
_JPEG_END = 0xD9


class Limits(NamedTuple):
    max_pixels: int
    max_aspect_ratio: float = MAX_ASPECT_RATIO  # long side over short side


@contextmanager
def opened(data: bytes, limits: Limits) -> Iterator[tuple[Image.Image, str]]:
    """The image, its pixels not yet decoded, and the name of its type.

    Raises UnsupportedType for bytes of no accepted type, and UnusableImage for an image that is over a limit or that
    fails to decode, here or inside the context. MemoryError passes.
    """
    if not data:
        raise UnusableImage("The image is empty.")
    name = sniff(data)
    scans = scans_of(data) if name == "JPEG" else 1
    if scans > MAX_SCANS:  # each may cost as much as a whole image, says libjpeg-turbo
        raise UnusableImage(f"The JPEG has more than {MAX_SCANS} scans.")
    if not scans:  # Pillow would look for one byte by byte
        raise _broken(name)
    try:
        with PARSERS[name](BytesIO(data)) as image:
            _check_size(image.size, limits)
            yield image, name
    except (UnsupportedType, UnusableImage, MemoryError):
        raise
    except Image.DecompressionBombError:
        raise _too_many_pixels(limits) from None
    except Exception:  # on broken files Pillow's parsers raise nearly every built-in exception
        raise _broken(name) from None


def scans_of(jpeg: bytes) -> int:
    """The number of scans before the end of the image. Markers are found as libjpeg finds them (T.81, annex B)."""
    scans, position = 0, 2
    while match := JPEG_MARKER.search(jpeg, position):
        marker, position = jpeg[match.start() + 1], match.end()
        if marker == _JPEG_END:
            break
        if marker in JPEG_BARE:
            continue
        scans += marker == JPEG_SCAN
        position += max(int.from_bytes(jpeg[position : position + 2], "big"), 2)
    return scans


def _check_size(size: tuple[int, int], limits: Limits) -> None:
    width, height = size
    if width * height > limits.max_pixels:
        raise _too_many_pixels(limits)
    if max(size) > MAX_SIDE:
        raise UnusableImage(f"A side of the image is longer than {MAX_SIDE} pixels.")
    if max(size) > limits.max_aspect_ratio * min(size):
        raise UnusableImage(f"The long side of the image is over {limits.max_aspect_ratio:g} times its short side.")


def _broken(name: str) -> UnusableImage:
    return UnusableImage(f"This looks like {name} but cannot be decoded.")


def _too_many_pixels(limits: Limits) -> UnusableImage:
    return UnusableImage(f"The image has more than {limits.max_pixels} pixels.")


def sniff(data: bytes) -> str:
    """Name of the image type by its first bytes. Raises UnsupportedType."""
    name = what_is(data)
    if name not in IMAGES:
        raise UnsupportedType(f"This is {name}, not {ACCEPTED}." if name else f"This is not {ACCEPTED}.")
    return name


def orientation(exif: bytes) -> int:
    """1 to 8, numbered as in Exif 2.32, 4.6.4. It is 1, upright, where the tag is absent or broken.

    `exif` is a TIFF structure, with or without the marker that JPEG puts before it. Pillow's `getexif` would take
    that of XMP too.
    """
    exif = exif.removeprefix(_EXIF)
    if exif[:2] not in (b"II", b"MM"):
        return 1
    order: Literal["little", "big"] = "little" if exif[:2] == b"II" else "big"

    def number(at: int, size: int) -> int:
        return int.from_bytes(exif[at : at + size], order)

    directory = number(4, 4)
    for entry in range(directory + 2, directory + 2 + 12 * min(number(directory, 2), _MAX_ENTRIES), 12):
        if number(entry, 2) == _ORIENTATION:
            one_number = number(entry + 2, 2) == _SHORT and number(entry + 4, 4) == 1
            return number(entry + 8, 2) if one_number and 1 <= number(entry + 8, 2) <= 8 else 1
    return 1
