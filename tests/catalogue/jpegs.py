"""JPEG: subsampling, colour transforms, Exif, profiles, several images in one, scans, and broken markers."""

import io
import struct
import zipfile
from functools import partial
from typing import Any

import numpy as np
from PIL import Image

from tests.catalogue.case import GRAYS, Case, bad, cuts, encode, exif, good, oriented, quarters

SOI, EOI = b"\xff\xd8", b"\xff\xd9"


def jpeg(image: Image.Image | None = None, /, **options: Any) -> bytes:
    return encode(image or quarters(), "JPEG", **{"quality": 95, "subsampling": 0, **options})


def segment(marker: int, payload: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(payload) + 2) + payload


def spliced(*segments: bytes, picture: bytes | None = None) -> bytes:
    """Segments put behind the start of an image."""
    return SOI + b"".join(segments) + (picture or jpeg())[2:]


def exif_block(tiff: bytes) -> bytes:
    return segment(0xE1, b"Exif\0\0" + tiff)


def entry(tag: int, kind: int, count: int, value: int) -> bytes:
    return struct.pack("<HHII", tag, kind, count, value)


def directory(*entries: bytes, following: int = 0) -> bytes:
    return b"II*\0\x08\0\0\0" + struct.pack("<H", len(entries)) + b"".join(entries) + struct.pack("<I", following)


def frame_at(data: bytes) -> int:
    """Where the payload of the frame header is: precision, height, width, components."""
    return next(data.index(bytes((0xFF, kind))) for kind in (0xC0, 0xC2) if bytes((0xFF, kind)) in data) + 4


def patched(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


def sized(width: int, height: int) -> bytes:
    return patched(jpeg(), frame_at(jpeg()) + 1, struct.pack(">HH", height, width))


def without(marker: int) -> bytes:
    """An image without its segments of one kind."""
    data, kept, at = jpeg(), [SOI], 2
    while data[at + 1] != 0xDA:
        end = at + 2 + struct.unpack_from(">H", data, at + 2)[0]
        kept += [data[at:end]] if data[at + 1] != marker else []
        at = end
    return b"".join(kept) + data[at:]


def ycck() -> bytes:
    """As Photoshop writes it. Pillow cannot, but it writes four planes unchanged: those of the inverted image."""
    luma, blue, red = (
        255 - np.asarray(band) for band in Image.eval(quarters(), lambda v: 255 - v).convert("YCbCr").split()
    )
    planes = Image.merge("CMYK", [Image.fromarray(plane) for plane in (luma, blue, red, np.zeros_like(luma))])
    data = jpeg(planes)
    return patched(data, data.index(b"Adobe") + 11, b"\x02")


def scans(count: int) -> bytes:
    """A progressive image whose first scan is there `count` times more."""
    data = jpeg(progressive=True)
    start = data.index(b"\xff\xda")
    end = start + 2
    while not (data[end] == 0xFF and data[end + 1] not in (0, *range(0xD0, 0xD8))):
        end += 1
    return data[:start] + data[start:end] * count + data[start:]


def unended(**options: Any) -> bytes:
    return jpeg(**options)[:-2]


def several(**options: Any) -> bytes:
    return encode(quarters(), "MPO", save_all=True, append_images=[Image.new("RGB", (48, 32))], quality=95, **options)


def zipped(name: str, data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(name, data)
    return out.getvalue()


ENCODINGS: dict[str, dict[str, Any]] = {
    "4:4:4": {}, "4:2:2": {"subsampling": 1}, "4:2:0": {"subsampling": 2}, "progressive": {"progressive": True},
    "optimised": {"optimize": True}, "restart markers": {"restart_marker_blocks": 1},
    "a comment": {"comment": b"x" * 1000}, "Adobe RGB": {"keep_rgb": True},
}  # fmt: skip
ICC = b"ICC_PROFILE\0"
XMP = b"http://ns.adobe.com/xap/1.0/\0"
LOOP = directory(entry(0x8769, 4, 1, 8), entry(0x8825, 4, 1, 8), following=8)
MANY = b"II*\0\x08\0\0\0\xff\xff" + b"".join(entry(0x9000 + i % 4096, 7, 60_000, 8) for i in range(5000))


def cases() -> list[Case]:
    close = 6  # what quality 95 costs
    return [
        *(good(f"JPEG, {name}", partial(jpeg, **options), tolerance=close) for name, options in ENCODINGS.items()),
        good("JPEG, gray", lambda: jpeg(quarters(GRAYS).convert("L")), GRAYS, tolerance=close),
        good("JPEG, gray and progressive", lambda: jpeg(quarters(GRAYS).convert("L"), progressive=True), GRAYS, tolerance=close),
        good("JPEG, CMYK as Adobe inverts it", lambda: jpeg(quarters().convert("CMYK")), tolerance=close),
        good("JPEG, YCCK", ycck, tolerance=close),
        *oriented("JPEG", jpeg, tolerance=close),
        *(good(f"JPEG, orientation {n!r}", partial(jpeg, exif=exif(n)), tolerance=close) for n in (0, 9, 65535)),
        *(good(f"JPEG, Exif with {name}", partial(spliced, *segments), tolerance=close) for name, segments in {
            "a bad header": [exif_block(b"XX*\0\x08\0\0\0")], "a directory that is its own successor": [exif_block(LOOP)],
            "64 kB of junk": [exif_block(bytes(range(256)) * 255)], "nothing": [exif_block(b"")],
            "a directory far away": [exif_block(b"II*\0\xff\xff\xff\xff")],
            "a rational over zero": [exif_block(directory(entry(0x011A, 5, 1, 26)) + struct.pack("<II", 1, 0))],
            "an orientation of four numbers": [exif_block(directory(entry(0x0112, 3, 4, 6)))],
            "an orientation in words": [exif_block(directory(entry(0x0112, 2, 4, 0x36)))],
            "300 blocks": [exif_block(directory(entry(0x0112, 3, 1, 1)))] * 300,
            "5,000 tags of 60 kB": [exif_block(MANY)],
        }.items()),
        good("JPEG, an orientation in XMP alone", lambda: spliced(segment(0xE1, XMP + b'<x tiff:Orientation="6"/>')), tolerance=close),
        *(good(f"JPEG, {name}", partial(spliced, *segments), tolerance=close) for name, segments in {
            "a profile cut short": [segment(0xE2, ICC + b"\1\1" + b"x" * 9)],
            "a profile of 3 MB": [segment(0xE2, ICC + bytes((i, 47)) + bytes(65000)) for i in range(1, 48)],
            "a profile out of order": [segment(0xE2, ICC + bytes((i, 3)) + bytes(100)) for i in (3, 1, 2)],
            "a profile of one part in none": [segment(0xE2, ICC + b"\0\0")],
            "a broken list of pictures": [segment(0xE2, b"MPF\0II*\0\xff\xff\xff\xff")],
            "a list of no pictures": [segment(0xE2, b"MPF\0" + directory(entry(0xB001, 4, 1, 0)))],
            "Photoshop resources of 4 GB": [segment(0xED, b"Photoshop 3.0\x008BIM\x04\x04\0\0\xff\xff\xff\xff")],
            "Adobe cut short": [segment(0xEE, b"Ado")], "every kind of application data": [segment(0xE0 + i, b"x") for i in range(16) if i != 14],
            "500 comments": [segment(0xFE, b"x" * 60)] * 500, "padding before a marker": [b"\xff" * 1000],
        }.items()),
        good("JPEG, 100,000 comments", lambda: spliced(segment(0xFE, b"") * 100_000), tolerance=close),
        good("JPEG, two pictures (MPO)", several, tolerance=30),
        good("JPEG, with a gain map (Ultra HDR)", lambda: spliced(segment(0xE1, XMP + b'<x hdrgm:Version="1.0"/>'), picture=several()), tolerance=30),
        good("JPEG, 80 scans", lambda: scans(70), tolerance=close),
        bad("JPEG, 200 scans", lambda: scans(190)),
        bad("JPEG, 20,000 scans", lambda: scans(20_000)),
        *cuts("JPEG", jpeg),
        bad("JPEG, the first bytes", lambda: b"\xff\xd8\xff\xe0"),
        bad("JPEG, start and end", lambda: b"\xff\xd8\xff\xd9"),
        *(bad(f"JPEG, {name}, no end", partial(unended, **options)) for name, options in ENCODINGS.items()),
        bad("JPEG, half an end", lambda: jpeg()[:-1]),
        good("JPEG, no end before 64 zeros", lambda: jpeg()[:-2] + bytes(64), tolerance=close),
        bad("JPEG, of 12 bits", lambda: patched(jpeg(), frame_at(jpeg()), b"\x0c")),
        bad("JPEG, a height behind its data", lambda: patched(jpeg(), frame_at(jpeg()) + 1, b"\0\0")),
        good("JPEG, 1 kB behind the end", lambda: jpeg() + bytes(1000), tolerance=close),
        good("JPEG, 5 MB behind the end", lambda: jpeg() + np.random.default_rng(5).bytes(5_000_000), tolerance=close),
        good("JPEG, a ZIP behind the end", lambda: jpeg() + zipped("a.txt", b"hello"), tolerance=close),
        good("JPEG, HTML behind the end", lambda: jpeg() + b"<script>alert(1)</script>", tolerance=close),
        bad("JPEG, height 0 (DNL)", lambda: sized(48, 0)),
        bad("JPEG, width 0", lambda: sized(0, 32)),
        bad("JPEG, claims 65500 x 65500", lambda: sized(65500, 65500)),
        bad("JPEG, claims 7000 x 7000", lambda: sized(7000, 7000), 200, 422),
        bad("JPEG, claims 1 x 60000", lambda: sized(1, 60000)),
        bad("JPEG, a second start", lambda: SOI + jpeg()),
        bad("JPEG, a second frame header", lambda: spliced(jpeg()[frame_at(jpeg()) - 4 : frame_at(jpeg()) + 15])),
        *(bad(f"JPEG, no segment {kind:#x}", partial(without, kind)) for kind in (0xC0, 0xDB)),
        good("JPEG, no Huffman tables (as in MJPEG)", lambda: without(0xC4), tolerance=close),
        bad("JPEG, 255 components", lambda: patched(jpeg(), frame_at(jpeg()) + 5, b"\xff")),
        bad("JPEG, 2 components", lambda: patched(jpeg(), frame_at(jpeg()) + 5, b"\x02")),
        bad("JPEG, 12 bits", lambda: patched(jpeg(), frame_at(jpeg()), b"\x0c")),
        bad("JPEG, lossless", lambda: patched(jpeg(), frame_at(jpeg()) - 3, b"\xc3")),
        bad("JPEG, Huffman codes said to be arithmetic", lambda: patched(jpeg(), frame_at(jpeg()) - 3, b"\xc9"), 200, 422),
        bad("JPEG, restart every 65535 blocks", lambda: spliced(segment(0xDD, b"\xff\xff")), 200, 422),
        bad("JPEG, restart every block, without markers", lambda: spliced(segment(0xDD, b"\x00\x01")), 200, 422),
        bad("JPEG, quantised in 16 bits", lambda: spliced(segment(0xDB, b"\x10" + b"\0\x01" * 64)), 200, 422),
        bad("JPEG, a Huffman table of 255 codes a length", lambda: spliced(segment(0xC4, b"\0" + b"\xff" * 16 + bytes(4080)))),
        bad("JPEG, a segment longer than the file", lambda: SOI + b"\xff\xdb\xff\xff" + jpeg()[4:]),
        good("JPEG, junk between segments", lambda: spliced(segment(0xFE, b"x") + b"\0\1\2junk"), tolerance=close),
        bad("JPEG, noise after the scan's header", lambda: jpeg()[: jpeg().index(b"\xff\xda") + 14] + np.random.default_rng(7).bytes(4000), 200, 422),
    ]  # fmt: skip
