"""What is read from a file before a parser of Pillow's sees it: the scans of a JPEG, and the orientation in Exif.

Nothing is decoded, and the time is linear in the bytes. A parser of all of Exif can be kept busy for hours.
"""

import re
from typing import Literal, NamedTuple

_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")  # not a stuffed byte, a restart marker or padding
_SOI, _EOI, _SOS, _TEM, _COM = 0xD8, 0xD9, 0xDA, 0x01, 0xFE
# The APPn segments that libjpeg guesses the colours from
_ADOBE = 0xEE
_APP0, _JFIF = 0xE0, b"JFIF\0"
_JFIF_BYTES = 14  # a shorter one is none to libjpeg
_EXIF = b"Exif\0\0"
MAX_SEGMENTS = 10_000  # a camera writes tens, an ICC profile of the largest allowed size 255

_ORIENTATION = 0x0112
_SHORT = 3
_MAX_ENTRIES = 1000  # of a directory; cameras write tens


class Jpeg(NamedTuple):
    bare: bytes  # the file without comments and without application data but JFIF's and Adobe's, so that none is parsed
    exif: bytes  # the first Exif block, a TIFF structure; empty where there is none


def read_jpeg(data: bytes, *, max_scans: int) -> Jpeg:
    """Raises ValueError for a file of more than `max_scans` scans or MAX_SEGMENTS segments. libjpeg-turbo advises to
    limit the scans of untrusted files, because each may cost as much as a whole image. Markers are found where libjpeg
    finds them (ITU-T T.81, annex B).
    """
    kept = [data[:2]]
    exif = b""
    scans = segments = 0
    position = 2
    while match := _MARKER.search(data, position):
        start, position = match.span()
        segments += 1
        if segments > MAX_SEGMENTS:
            raise ValueError(f"more than {MAX_SEGMENTS} segments")
        marker = data[start + 1]
        if marker == _EOI:
            break
        if marker in (_SOI, _TEM):  # these two have no length
            continue
        end = position + max(int.from_bytes(data[position : position + 2], "big"), 2)
        if marker == _SOS:
            if not scans:
                kept.append(data[start:])
            scans += 1
            if scans > max_scans:
                raise ValueError(f"more than {max_scans} scans")
        elif not scans and not _is_metadata(marker, data[position + 2 : min(end, position + 2 + _JFIF_BYTES)]):
            kept.append(data[start:end])
        elif not exif and data.startswith(_EXIF, position + 2):
            exif = data[position + 2 + len(_EXIF) : end]
        position = end
    return Jpeg(b"".join(kept), exif)


def _is_metadata(marker: int, start: bytes) -> bool:
    """`start` is the first _JFIF_BYTES of the segment's data, or all of it."""
    if marker == _APP0:
        return not start.startswith(_JFIF) or len(start) < _JFIF_BYTES
    return marker == _COM or (0xE0 <= marker <= 0xEF and marker != _ADOBE)


def orientation(exif: bytes) -> int:
    """1 to 8, numbered as in Exif 2.32, 4.6.4. It is 1, upright, where the tag is absent or broken.

    `exif` is a TIFF structure, with or without the marker that JPEG puts before it.
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
