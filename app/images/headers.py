"""What the first bytes tell before anything decodes them: what they are, an accepted image or what people send in place
of one; and an image's size, which tells what decoding may cost.

A few bounded reads each, on the event loop. No size is judged here: a decoder refuses what turns out to be larger.
"""

import codecs
import re
from collections.abc import Callable

LOOK_BYTES = 512  # of the beginning are looked at
HEAD_BYTES = 2**12  # read at once: most headers end here, and reading an upload in pieces takes longer
_BMP = rb"(?s:BM.{4}(?:\0{4}|.{8}[\x0c\x10\x28\x34\x38\x40\x6c\x7c]\0{3}))"  # reserved bytes, or a known length
_BRANDS = rb"(?s:.{4}ftyp(?:.{4}){0,7})"  # the major brand and those that it is compatible with: ISO/IEC 14496-12, 4.3
IMAGES = {
    "JPEG": re.compile(rb"\xff\xd8\xff"),
    "PNG": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "WebP": re.compile(rb"(?s:RIFF.{4}WEBP)"),
    "GIF": re.compile(rb"GIF8[79]a"),
    "BMP": re.compile(_BMP),
    "TIFF": re.compile(rb"II\*\0|MM\0\*"),
    "AVIF": re.compile(_BRANDS + rb"avi[fs]"),
}
ACCEPTED = f"{', '.join([*IMAGES][:-1])} or {[*IMAGES][-1]}"
_OTHERS = {  # the first that fits
    # The brand mif1 may be in an AVIF too, which has been looked for before.
    "HEIC": re.compile(_BRANDS + rb"(?:hei[cmsx]|hev[cmsx]|mif1|msf1)"),
    "a raw photograph": re.compile(rb"(?s:.{4})ftypcrx |FUJIFILMCCD-RAW"),
    "a video": re.compile(rb"(?s:.{4})ftyp(?:iso|mp4|avc1|qt  |M4V |3gp)|\x1a\x45\xdf\xa3|(?s:RIFF....AVI )"),
    "an archive": re.compile(
        rb"\x1f\x8b|PK(?:\x03\x04|\x05\x06)|7z\xbc\xaf|Rar!|BZh\d|\xfd7zXZ|\x28\xb5\x2f\xfd|(?s:.{257}ustar)"
    ),
    "PDF": re.compile(rb"%PDF-"),
    "SVG": re.compile(rb"\s*(?:<\?xml[^>]{0,200}>\s*)?<(?:!DOCTYPE svg|svg)\b", re.IGNORECASE),
    "HTML": re.compile(rb"\s*<(?:!DOCTYPE html|html|head|body|script)\b", re.IGNORECASE),
    "a form": re.compile(rb"(?:\r?\n)?--[^\r\n]{1,256}\r?\n[\w-]+ ?:|[\w.%+\[\]-]{1,64}=[^\s=]*(?:[&=]|\Z)"),
    "JSON": re.compile(rb'\s*(?:\{\s*["}]|\[\s*["{\[\d\]tfn-]|"[\w+/=]{16})'),
    "a data URL": re.compile(rb"data:[\w/+.-]*[;,]", re.IGNORECASE),
    "base64": re.compile(rb"\s*[\w+/-]{60,}={0,2}(?:\s.*)?\Z", re.DOTALL | re.ASCII),
}
_CONTROLS = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f\x7f]")

Read = Callable[[int, int], bytes]  # from a position so many bytes; fewer where the file ends
Size = tuple[int, int]  # width and height in pixels, as they are stored: before any orientation

UNKNOWN = (0, 0)
MAX_STEPS = 1000  # from one segment, chunk or box to the next: cameras and editors write some hundreds
_BYTES = 64  # read at a step
_END = 2**63

JPEG_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")  # not a stuffed byte, a restart marker or padding
_JPEG_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
JPEG_SCAN = 0xDA
JPEG_BARE = {0x01, 0xD8}  # markers without a length
_GIF_IMAGE, _GIF_EXTENSION = b",!"
_GIF_MAX_BLOCKS, _GIF_WINDOW_BYTES = 35_000, 2**16  # blocks of up to 255 bytes; a comment may be megabytes long
_TIFF_WIDTH, _TIFF_HEIGHT, _TIFF_ENTRY_BYTES, _TIFF_MAX_ENTRIES = 256, 257, 12, 4096
_TIFF_BYTES = {1: 1, 3: 2, 4: 4}  # of a number, by its type
_AVIF_CONTAINERS = {b"meta": 4, b"iprp": 0, b"ipco": 0, b"moov": 0, b"trak": 0}  # and the bytes before their first box


def what_is(data: bytes) -> str | None:
    """The name of what begins like `data`, of which LOOK_BYTES are enough. None if that is unknown."""
    start = data[:LOOK_BYTES]
    for name, beginning in (IMAGES | _OTHERS).items():
        if beginning.match(start):
            return name
    return "text" if start and _is_text(start) else None


def _is_text(start: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)  # its last letter may be cut
    except UnicodeDecodeError:
        return False
    return not _CONTROLS.search(start)


def size_in_header(read: Read) -> Size:
    """UNKNOWN where the header tells no size. Never raises."""
    head = read(0, HEAD_BYTES)

    def part(at: int, size: int) -> bytes:
        return head[at : at + size] if at + size <= len(head) else read(at, size)

    start = head[:LOOK_BYTES]
    return next((_READERS[name](part) for name, begins in IMAGES.items() if begins.match(start)), UNKNOWN)


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes | memoryview) -> int:
    return int.from_bytes(data, "little")


def _jpeg(read: Read) -> Size:
    """ITU-T T.81, annex B. Markers are found where libjpeg finds them: it skips what stands between segments."""
    at = 2
    for _ in range(MAX_STEPS):
        found = JPEG_MARKER.search(data := read(at, _BYTES))
        if not found and len(data) < _BYTES:
            break
        if not found:
            at += _BYTES - 1
            continue
        marker, at = data[found.start() + 1], at + found.end()
        if marker in _JPEG_FRAMES:
            frame = read(at + 3, 4)
            return _big(frame[2:]), _big(frame[:2])
        if marker == JPEG_SCAN:
            break
        if marker not in JPEG_BARE:
            at += max(_big(read(at, 2)), 2)
    return UNKNOWN


def _png(read: Read) -> Size:
    """PNG, 11.2.2. Pillow takes a header that is not the first chunk."""
    at = 8
    for _ in range(MAX_STEPS):
        chunk = read(at, 16)
        if chunk[4:8] == b"IHDR":
            return _big(chunk[8:12]), _big(chunk[12:])
        if not chunk:
            break
        at += 12 + _big(chunk[:4])
    return UNKNOWN


def _webp(read: Read) -> Size:
    """RFC 9649, 2.5 to 2.7: of an animation the canvas."""
    kind, data = read(12, 4), read(20, 10)
    if kind == b"VP8X":
        return 1 + _little(data[4:7]), 1 + _little(data[7:])
    if kind == b"VP8L":
        bits = _little(data[1:5])
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 ":
        return _little(data[6:8]) & 0x3FFF, _little(data[8:]) & 0x3FFF
    return UNKNOWN


def _gif(read: Read) -> Size:
    """The screen, and the first frame where that reaches beyond it, as Pillow has it (GIF89a, 18 to 26)."""
    screen = read(6, 5)
    at = 13 + (3 * 2 ** ((screen[4] & 7) + 1) if len(screen) == 5 and screen[4] & 0x80 else 0)
    inside = False  # an extension, which consists of blocks up to an empty one
    window = memoryview(b"")
    for _ in range(_GIF_MAX_BLOCKS):
        if len(window) < 9:
            window = memoryview(read(at, _GIF_WINDOW_BYTES))
        if not window:
            break
        if inside:
            step, inside = 1 + window[0], window[0] > 0
        elif window[0] == _GIF_IMAGE:
            left, top, width, height = (_little(window[n : n + 2]) for n in (1, 3, 5, 7))
            return max(_little(screen[:2]), left + width), max(_little(screen[2:4]), top + height)
        else:
            inside = window[0] == _GIF_EXTENSION
            step = 1 + inside
        at, window = at + step, window[step:]
    return UNKNOWN


def _bmp(read: Read) -> Size:
    """A height below zero says that the rows go from top to bottom."""
    header = read(14, 12)
    if _little(header[:4]) == 12:
        return _little(header[4:6]), _little(header[6:8])
    return _little(header[4:8]), abs(int.from_bytes(header[8:], "little", signed=True))


def _tiff(read: Read) -> Size:
    """Of the first directory (TIFF 6.0, section 2)."""
    number = _little if read(0, 2) == b"II" else _big
    directory = number(read(4, 4))
    entries = min(number(read(directory, 2)), _TIFF_MAX_ENTRIES)
    table = read(directory + 2, entries * _TIFF_ENTRY_BYTES)
    found = {_TIFF_WIDTH: 0, _TIFF_HEIGHT: 0}
    for at in range(0, len(table), _TIFF_ENTRY_BYTES):
        if (tag := number(table[at : at + 2])) in found:
            found[tag] = number(table[at + 8 : at + 8 + _TIFF_BYTES.get(number(table[at + 2 : at + 4]), 0)])
    return found[_TIFF_WIDTH], found[_TIFF_HEIGHT]


def _avif(read: Read) -> Size:
    """The largest of the items (`ispe`, ISO/IEC 23008-12, 6.5.3) and tracks (`tkhd`, ISO/IEC 14496-12, 8.3.2): others
    are parts, alpha or thumbnails of it.
    """
    largest, ranges = UNKNOWN, [(0, _END)]
    for _ in range(MAX_STEPS):
        if not ranges:
            break
        at, end = ranges.pop()
        head = read(at, 16)
        size, kind, body = _big(head[:4]), head[4:8], at + 8
        if size == 1:
            size, body = _big(head[8:]), at + 16
        after = at + size if size else end
        if len(kind) < 4 or not body <= after <= end:
            continue
        ranges.append((after, end))
        if kind in _AVIF_CONTAINERS:
            ranges.append((body + _AVIF_CONTAINERS[kind], after))
        elif kind == b"ispe":
            size_of_item = read(body + 4, 8)
            largest = max(largest, (_big(size_of_item[:4]), _big(size_of_item[4:])), key=_pixels)
        elif kind == b"tkhd":
            size_of_track = read(body + (88 if read(body, 1) == b"\1" else 76), 8)  # with 16 bits of a fraction each
            largest = max(largest, (_big(size_of_track[:2]), _big(size_of_track[4:6])), key=_pixels)
    return largest


def _pixels(size: Size) -> int:
    return size[0] * size[1]


_READERS: dict[str, Callable[[Read], Size]] = {
    "JPEG": _jpeg,
    "PNG": _png,
    "WebP": _webp,
    "GIF": _gif,
    "BMP": _bmp,
    "TIFF": _tiff,
    "AVIF": _avif,
}
