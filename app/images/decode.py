"""Untrusted bytes to a checked, opened image. The bytes tell the type, and limits are checked before any pixel.

Knows nothing of HTTP, and imports little: it runs in processes of its own.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any, NamedTuple

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
from app.images.cut import CUT, is_cut
from app.images.kinds import ACCEPTED, IMAGES, what_broke, what_is
from app.images.metadata import Jpeg, read_jpeg

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


class JpegImage(JpegImagePlugin.JpegImageFile):
    """A JPEG, also one without its end. It decodes if no pixel depends on what comes behind its data.

    libjpeg makes up what is missing and does not tell. So the same data is decoded with other ends too.
    """

    unended = b""  # the file, where it has no end

    def load(self) -> Any:
        access = super().load()
        unended, self.unended = self.unended, b""
        fillers = _FILLERS[: max(2, _PIXELS_COMPARED // (self.width * self.height))]
        for filler in fillers if unended else ():
            with JpegImagePlugin.JpegImageFile(BytesIO(unended + filler + _EOI)) as other:
                if any(strip != another for strip, another in zip(_strips(self), _strips(other), strict=True)):
                    raise UnusableImage(CUT)
        return access


def _strips(image: Image.Image) -> Iterator[bytes]:
    for top in range(0, image.height, STRIP_ROWS):
        yield image.crop((0, top, image.width, min(top + STRIP_ROWS, image.height))).tobytes()


# Pillow's own search for a parser is not used: it would try others, and it opens some JPEG files as MPO, with a parser
# that reads metadata.
PARSERS: dict[str, type[ImageFile.ImageFile]] = {
    "JPEG": JpegImage,
    "PNG": PngImagePlugin.PngImageFile,
    "WebP": WebpImagePlugin.WebPImageFile,
    "GIF": GifImagePlugin.GifImageFile,
    "BMP": BmpImagePlugin.BmpImageFile,
    "TIFF": TiffImagePlugin.TiffImageFile,
    "AVIF": AvifImage,
}
MAX_SIDE = 16384  # pixels; the limit of WebP itself is 16383
MAX_SCANS = 100  # of a JPEG; encoders write ten
_SUPPORTED = "Save it with 8 bits, baseline or progressive, as nearly every program does."
STRIP_ROWS = 64  # compared at a time
_EOI = b"\xff\xd9"  # the marker of the end of a JPEG
# What may come behind a scan: zeros and other bits, and the same behind each restart marker that may be the next. Of
# 960 files that lacked 1 to 40 bytes, two of them took 18 for whole, four 6, and eight none.
_FILLERS = [
    bits + b"".join(bytes((0xFF, 0xD0 + n % 8)) + bits for n in range(16))
    for bits in (bytes(64), *(bytes(n % 255 for n in random.Random(seed).randbytes(64)) for seed in range(7)))
]
_PIXELS_COMPARED = 100_000_000  # of all fillers together, but for the first two


class Limits(NamedTuple):
    max_pixels: int
    max_aspect_ratio: float  # long side over short side


@contextmanager
def opened(data: bytes, limits: Limits) -> Iterator[tuple[Image.Image, str]]:
    """The image, its pixels not yet decoded, and the name of its type.

    Raises UnsupportedType for bytes of no accepted type, and UnusableImage for an image that is over a limit or that
    fails to decode, here or inside the context. MemoryError passes.
    """
    if not data:
        raise UnusableImage("The image is empty.")
    name = sniff(data)
    jpeg = _read_jpeg(data) if name == "JPEG" else None
    try:
        with PARSERS[name](BytesIO(jpeg.bare + (b"" if jpeg.ended else _EOI) if jpeg else data)) as image:
            _check_size(image.size, limits)
            if jpeg and jpeg.exif:
                image.info["exif"] = jpeg.exif
            if isinstance(image, JpegImage) and jpeg and not jpeg.ended:
                image.unended = jpeg.bare
            yield image, name
    except (UnsupportedType, UnusableImage, MemoryError):
        raise
    except Image.DecompressionBombError:
        raise _too_many_pixels(limits) from None
    except Exception as failure:  # on broken files Pillow's parsers raise nearly every built-in exception
        if broke := what_broke(data):
            raise UnusableImage(broke.sentence) from None
        if jpeg and jpeg.kind and (jpeg.ended or jpeg.has_scans):
            raise UnusableImage(f"This kind of JPEG is not supported: {jpeg.kind}. {_SUPPORTED}") from None
        if (not jpeg.ended and not jpeg.is_broken) if jpeg else is_cut(name, data, failure):
            raise UnusableImage(CUT) from None
        raise UnusableImage(f"This looks like {name} but cannot be decoded.") from None


def _read_jpeg(data: bytes) -> Jpeg:
    """Raises UnusableImage also where scans are missing at the end."""
    try:
        jpeg = read_jpeg(data, max_scans=MAX_SCANS)
    except ValueError as error:
        raise UnusableImage(f"The JPEG has {error}.") from None
    if not (jpeg.ended or jpeg.has_scans or jpeg.is_broken):
        raise UnusableImage(CUT)
    return jpeg


def _check_size(size: tuple[int, int], limits: Limits) -> None:
    width, height = size
    if width * height > limits.max_pixels:
        raise _too_many_pixels(limits)
    if max(size) > MAX_SIDE:
        raise UnusableImage(f"A side of the image is longer than {MAX_SIDE} pixels.")
    if max(size) > limits.max_aspect_ratio * min(size):
        raise UnusableImage(f"The long side of the image is over {limits.max_aspect_ratio:g} times its short side.")


def _too_many_pixels(limits: Limits) -> UnusableImage:
    return UnusableImage(f"The image has more than {limits.max_pixels} pixels.")


def sniff(data: bytes) -> str:
    """Name of the image type by its first bytes. Raises UnsupportedType."""
    kind = what_is(data)
    if kind is None:
        raise UnsupportedType(f"This is not an image of an accepted type: {ACCEPTED}.")
    if kind.name not in IMAGES:
        raise UnsupportedType(kind.sentence)
    return kind.name
