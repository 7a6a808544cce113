"""WebP: lossy, lossless, with alpha, animated, and containers that lie."""

import struct
from typing import Any

from PIL import Image

from tests.catalogue.case import SIZE, WHITES, Case, bad, cuts, encode, good, oriented, quarters, translucent


def webp(image: Image.Image | None = None, /, **options: Any) -> bytes:
    return encode(image or quarters(), "WEBP", **{"lossless": True, "exact": True, **options})


def chunk(kind: bytes, data: bytes) -> bytes:
    return kind + struct.pack("<I", len(data)) + data + bytes(len(data) % 2)


def riff(*chunks: bytes, size: int | None = None) -> bytes:
    body = b"WEBP" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body) if size is None else size) + body


def pixels() -> bytes:
    """The one chunk of a plain file."""
    return webp()[12:]


def extended(size: tuple[int, int] = SIZE, *, flags: int = 0) -> bytes:
    width, height = size
    return chunk(
        b"VP8X", struct.pack("<I", flags) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    )


def claimed(size: tuple[int, int]) -> bytes:
    """Lossless data that only says how large it is."""
    width, height = size
    return riff(chunk(b"VP8L", b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14) + bytes(20)))


def cases() -> list[Case]:
    return [
        good("WebP, lossless", webp),
        good("WebP, lossy", lambda: webp(lossless=False, quality=95), tolerance=12),
        good("WebP, transparent", lambda: webp(translucent(0)), WHITES),
        good("WebP, transparent and lossy", lambda: webp(translucent(0), lossless=False), WHITES),
        good("WebP, animated", lambda: webp(frames=3)),
        good("WebP, animated, 300 frames", lambda: webp(frames=300)),
        *(case for case in oriented("WebP", webp) if case.name[-1] in "1368"),
        good("WebP, broken Exif", lambda: webp(exif=b"II*\0\xff\xff\xff\xff")),
        good("WebP, a broken profile", lambda: webp(icc_profile=b"x" * 1000)),
        good("WebP, an orientation in XMP alone", lambda: webp(xmp=b'<x tiff:Orientation="6"/>')),
        *cuts("WebP", webp),
        bad("WebP, the first bytes", lambda: b"RIFF\0\0\0\0WEBP"),
        bad("WebP, no pixels", lambda: riff(extended())),
        bad("WebP, a canvas of 2^24 a side", lambda: riff(extended((2**24, 2**24)), pixels())),
        bad("WebP, a canvas of another size", lambda: riff(extended((500, 500)), pixels()), 200, 422),
        bad("WebP, claims 16383 x 16383", lambda: claimed((16_383, 16_383))),
        bad("WebP, 16383 x 3100 of one colour", lambda: webp(Image.new("RGB", (16_383, 3100)))),
        bad("WebP, claims 8000 x 6000 and has nothing", lambda: claimed((8000, 6000))),
        bad("WebP, 300 x 1", lambda: webp(Image.new("RGB", (300, 1)))),
        good("WebP, 1 x 1", lambda: webp(Image.new("RGB", (1, 1))), None),
        bad("WebP, a container of 4 GB", lambda: riff(pixels(), size=0xFFFFFFFE), 200, 422),
        bad("WebP, a container of nothing", lambda: riff(pixels(), size=0)),
        bad("WebP, an unknown kind of pixels", lambda: riff(chunk(b"VP9 ", bytes(100)))),
        good("WebP, 1 kB behind the end", lambda: webp() + bytes(1000)),
        bad("WebP, said to be animated, without frames", lambda: riff(extended(flags=2), pixels()), 200, 422),
        bad("WebP, a frame outside the canvas", lambda: riff(extended(flags=2), chunk(b"ANIM", bytes(6)), chunk(b"ANMF", b"\xff" * 6 + bytes(10) + pixels()))),
    ]  # fmt: skip
