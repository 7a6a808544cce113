"""The orientation of a photograph, read from its Exif."""

from typing import Literal

_EXIF = b"Exif\0\0"
_ORIENTATION = 0x0112
_SHORT = 3
_MAX_ENTRIES = 1000  # of a directory; cameras write tens


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
