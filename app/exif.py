"""The one thing that Exif is read for: which way is up. A parser that reads all of it can be kept busy for hours."""

_ORIENTATION = 0x0112
_SHORT = 3
_MAX_ENTRIES = 1000  # of a directory; cameras write tens


def orientation(exif: bytes) -> int:
    """1 to 8 as Exif 2.32, 4.6.4 numbers them; 1, which is upright, for whatever is broken, absent or nonsense.

    `exif` is a TIFF structure, with or without the marker that JPEG puts before it.
    """
    exif = exif.removeprefix(b"Exif\0\0")
    order = {b"II": "little", b"MM": "big"}.get(exif[:2])
    if order is None:
        return 1

    def number(at: int, size: int) -> int:
        return int.from_bytes(exif[at : at + size], "little" if order == "little" else "big")

    directory = number(4, 4)
    for entry in range(directory + 2, directory + 2 + 12 * min(number(directory, 2), _MAX_ENTRIES), 12):
        if number(entry, 2) == _ORIENTATION:
            one_number = number(entry + 2, 2) == _SHORT and number(entry + 4, 4) == 1
            return number(entry + 8, 2) if one_number and 1 <= number(entry + 8, 2) <= 8 else 1
    return 1
