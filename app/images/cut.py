"""Whether a file that cannot be decoded ends before its image does, as after an upload or a download that broke off.

Each type says in its own way how long a file is. Any other file that cannot be decoded is broken: another upload of the
same file will not help.
"""

import re
from collections.abc import Iterator
from itertools import chain
from typing import Literal

CUT = "The image is cut short: its file ends too early. Send the whole file."
_TIFF_WIDTHS = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8}  # bytes, by type
_TIFF_PARTS = {273: 279, 324: 325}  # the tags of offsets of strips and of tiles, and of their sizes
_MAX_PARTS = 100_000  # reading more takes long
_SAID = re.compile("truncated|no more images", re.IGNORECASE)  # by Pillow, of types that have no length


def is_cut(name: str, data: bytes, failure: Exception) -> bool:
    """`failure` is how decoding ended. A cut JPEG is known by its markers: see read_jpeg."""
    size = len(data)
    if name == "PNG":
        return max(_png_chunks(data)) > size
    if name == "WebP":
        return 8 + int.from_bytes(data[4:8], "little") > size
    if name == "AVIF":
        return max(_boxes(data)) > size
    if name == "TIFF" and _tiff_end(data) > size:
        return True
    return _SAID.search(str(failure)) is not None


def _png_chunks(data: bytes) -> Iterator[int]:
    """Where each chunk ends, its checksum included, up to IEND, or beyond `data` where there is none."""
    end = 8
    while data[end + 4 : end + 8] != b"IEND":
        end += 12 + int.from_bytes(data[end : end + 4], "big")
        yield end
        if end >= len(data):
            yield end + 12
            return
    yield end


def _boxes(data: bytes) -> Iterator[int]:
    """Where each box of the file ends (ISO/IEC 14496-12, 4.2). The last may go on to the end."""
    end = 0
    while end < len(data):
        size = int.from_bytes(data[end : end + 4], "big")
        if size == 1:
            size = int.from_bytes(data[end + 8 : end + 16], "big")
        if size < 8:
            break
        end += size
        yield end
    yield end


def _tiff_end(data: bytes) -> int:
    """Where the last of these ends: the first directory, its values, the strips or tiles that it lists (TIFF 6.0)."""
    order: Literal["little", "big"] = "little" if data[:2] == b"II" else "big"

    def number(at: int, size: int) -> int:
        return int.from_bytes(data[at : at + size], order)

    directory = number(4, 4)
    first, entries = directory + 2, number(directory, 2)
    ends = [first + 12 * entries + 4]
    listed: dict[int, list[int]] = {}
    for entry in range(first, min(first + 12 * entries, len(data)), 12):
        tag, width, count = number(entry, 2), _TIFF_WIDTHS.get(number(entry + 2, 2), 0), number(entry + 4, 4)
        at = number(entry + 8, 4) if width * count > 4 else entry + 8
        ends.append(at + width * count)
        if tag in chain(*_TIFF_PARTS.items()) and tag not in listed and count <= _MAX_PARTS and ends[-1] <= len(data):
            listed[tag] = [number(place, width) for place in range(at, at + width * count, width or 1)]
    for offsets, sizes in _TIFF_PARTS.items():
        ends += map(sum, zip(listed.get(offsets, ()), listed.get(sizes, ()), strict=False))
    return max(ends)
