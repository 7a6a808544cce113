"""What is read from a file before a parser of Pillow's sees it: the scans of a JPEG, and the orientation in Exif.

Nothing is decoded, and the time is linear in the bytes. A parser of all of Exif can be kept busy for hours.
"""

import re
from typing import Literal, NamedTuple

_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")  # not a stuffed byte, a restart marker or padding
_SOF0, _SOI, _EOI, _SOS, _TEM, _COM = 0xC0, 0xD8, 0xD9, 0xDA, 0x01, 0xFE
# The APPn segments that libjpeg guesses the colours from
_ADOBE = 0xEE
_APP0, _JFIF = 0xE0, b"JFIF\0"
_JFIF_BYTES = 14  # a shorter one is none to libjpeg
_EXIF = b"Exif\0\0"
MAX_SEGMENTS = 10_000  # a camera writes tens, an ICC profile of the largest allowed size 255

_ORIENTATION = 0x0112
_SHORT = 3
_MAX_ENTRIES = 1000  # of a directory; cameras write tens

_FRAMES = {*range(0xC0, 0xD0), 0xF7} - {0xC4, 0xC8, 0xCC}
_PROGRESSIVE = 0xC2
_FRAME_BYTES = 6  # before the components: precision, height, width, their number
_BETWEEN_SCANS = {_SOS, 0xC4, 0xCC, 0xDB, 0xDD}  # scans, and their tables
_PADDING = bytes(16)  # so many zeros are behind the data, and no part of it
_KINDS = {0xC3: "lossless", 0xC5: "hierarchical", 0xC9: "arithmetic coding", 0xCA: "arithmetic coding", 0xF7: "JPEG-LS"}


class Jpeg(NamedTuple):
    bare: bytes  # the file without comments and without application data but JFIF's and Adobe's, so that none is parsed
    exif: bytes  # the first Exif block, a TIFF structure; empty where there is none
    ended: bool  # by a marker; else `bare` goes up to where its data may end
    has_scans: bool  # all that the image is made of; the last may be cut
    is_broken: bool  # something that is not a marker of a JPEG stands where one belongs
    kind: str  # what sets it apart from those that every decoder knows; mostly empty


class _Scans:
    """Which coefficients the scans have brought with all their bits (ITU-T T.81, B.2.2, B.2.3 and G.1.1.1)."""

    def __init__(self) -> None:
        self._missing: dict[int, set[int]] = {}
        self._progressive = False
        self.kind = ""

    def frame(self, marker: int, payload: bytes) -> None:
        if len(payload) < _FRAME_BYTES:
            return
        self._progressive = marker == _PROGRESSIVE
        coefficients = range(64 if self._progressive else 1)
        self._missing = {name: set(coefficients) for name in payload[6::3]}
        if payload[0] != 8:
            self.kind = f"{payload[0]} bits"
        elif payload[1:3] == b"\0\0":
            self.kind = "a height behind its data"
        self.kind = _KINDS.get(marker, self.kind)

    def scan(self, payload: bytes) -> None:
        names, rest = payload[1 : 1 + 2 * payload[0] : 2] if payload else b"", payload[-3:]
        if len(rest) < 3 or (self._progressive and rest[2] & 15):
            return  # bits are still to come
        brought = range(rest[0], rest[1] + 1) if self._progressive else range(1)
        for name in names:
            self._missing.get(name, set()).difference_update(brought)

    @property
    def are_all(self) -> bool:
        return bool(self._missing) and not any(self._missing.values())


def read_jpeg(data: bytes, *, max_scans: int) -> Jpeg:
    """Raises ValueError for a file of more than `max_scans` scans or MAX_SEGMENTS segments. libjpeg-turbo advises to
    limit the scans of untrusted files, because each may cost as much as a whole image. Markers are found where libjpeg
    finds them (ITU-T T.81, annex B).
    """
    kept = [data[:2]]
    exif = b""
    found = _Scans()
    scans = segments = scan_start = 0
    position = 2
    ended = is_broken = False
    stop = len(data)
    while match := _MARKER.search(data, position):
        start, end_of_last = match.start(), position
        position = match.end()
        segments += 1
        if segments > MAX_SEGMENTS:
            raise ValueError(f"more than {MAX_SEGMENTS} segments")
        marker = data[start + 1]
        if marker == _EOI:
            ended = True
            break
        if found.are_all and marker not in _BETWEEN_SCANS:  # no part of the image any more
            stop = start
            break
        if marker in (_SOI, _TEM):  # these two have no length
            continue
        end = position + max(int.from_bytes(data[position : position + 2], "big"), 2)
        if not scans:
            is_broken = is_broken or marker < _SOF0 or data[end_of_last:start].strip(b"\xff") != b""
        if marker in _FRAMES and not scans:
            found.frame(marker, data[position + 2 : end])
        if marker == _SOS:
            found.scan(data[position + 2 : end])
            scan_start = scan_start or start
            scans += 1
            if scans > max_scans:
                raise ValueError(f"more than {max_scans} scans")
        elif not scans and not _is_metadata(marker, data[position + 2 : min(end, position + 2 + _JFIF_BYTES)]):
            kept.append(data[start:end])
        elif not exif and data.startswith(_EXIF, position + 2):
            exif = data[position + 2 + len(_EXIF) : end]
        position = end
    if not scans and not ended:
        is_broken = is_broken or data[position:].strip(b"\xff") != b""
    if scan_start:
        kept.append(data[scan_start:] if ended else _without_padding(data[scan_start:stop]))
    return Jpeg(b"".join(kept), exif, ended, found.are_all, is_broken, found.kind)


def _without_padding(scans: bytes) -> bytes:
    if scans.endswith(_PADDING):
        scans = scans.rstrip(b"\0")  # a last byte that is 0 seems to be missing then, where nearly all have ones
        return scans + b"\0" if scans.endswith(b"\xff") else scans  # a byte of 255 has a zero behind it
    return scans.removesuffix(b"\xff")  # the first half of the marker of the end


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
