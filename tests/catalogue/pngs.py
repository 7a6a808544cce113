"""PNG: every depth and colour type, transparency by value, text, and headers that lie."""

import struct
import zlib
from functools import partial

import numpy as np
from PIL import Image, PngImagePlugin

from tests.catalogue.case import (
    BINARY,
    COLORS,
    GRAYS,
    SIZE,
    WHITES,
    Case,
    Colors,
    bad,
    cuts,
    encode,
    exif,
    good,
    grays,
    oriented,
    quarters,
    translucent,
)

MAGIC = b"\x89PNG\r\n\x1a\n"
GRAY, RGB, PALETTE, GRAY_ALPHA, RGBA = 0, 2, 3, 4, 6


def chunk(kind: bytes, data: bytes = b"") -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def header(size: tuple[int, int] = SIZE, *, bits: int = 8, color: int = RGB, rest: bytes = b"\0\0\0") -> bytes:
    return chunk(b"IHDR", struct.pack(">IIBB", *size, bits, color) + rest)


def rows(lines: np.ndarray) -> bytes:
    """Scan lines without a filter, compressed. `lines` is (height, bytes)."""
    return zlib.compress(b"".join(b"\0" + line.tobytes() for line in lines))


def png(*chunks: bytes) -> bytes:
    return MAGIC + b"".join(chunks) + chunk(b"IEND")


def plain(*extra: bytes, after: tuple[bytes, ...] = ()) -> bytes:
    return png(header(), *extra, chunk(b"IDAT", rows(np.asarray(quarters()).reshape(32, -1))), *after)


def deep(*bands: np.ndarray, color: int, extra: tuple[bytes, ...] = ()) -> bytes:
    """16 bits a sample, whose low byte is not that of the high one."""
    samples = (np.stack(bands, -1).astype(np.uint16) << 8 | 0x80).astype(">u2")
    return png(header(bits=16, color=color), *extra, chunk(b"IDAT", rows(samples.reshape(32, -1))))


def shallow(bits: int, values: tuple[int, ...], *extra: bytes, color: int = GRAY) -> bytes:
    """1, 2 or 4 bits a sample; `values` of the quarters."""
    picture = np.asarray(
        Image.fromarray(np.array(values, np.uint8).reshape(2, 2)).resize(SIZE, Image.Resampling.NEAREST)
    )
    ones = (picture[..., None] >> np.arange(bits - 1, -1, -1)) & 1
    return png(header(bits=bits, color=color), *extra, chunk(b"IDAT", rows(np.packbits(ones.reshape(32, -1), axis=1))))


def interlaced() -> bytes:
    picture = np.asarray(quarters())
    passes = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
    data = b"".join(b"\0" + line.tobytes() for y, x, dy, dx in passes for line in picture[y::dy, x::dx])
    return png(header(rest=b"\0\0\1"), chunk(b"IDAT", zlib.compress(data)))


def color_bands() -> list[np.ndarray]:
    return list(np.moveaxis(np.asarray(quarters()), -1, 0))


def palette(*extra: bytes) -> bytes:
    table = bytes(value for color in COLORS for value in color)
    return shallow(2, (0, 1, 2, 3), chunk(b"PLTE", table), *extra, color=PALETTE)


def split(parts: int) -> bytes:
    data = rows(np.asarray(quarters()).reshape(32, -1))
    size = -(-len(data) // parts)
    return png(header(), *(chunk(b"IDAT", data[at : at + size]) for at in range(0, parts * size, size)))


def claimed(size: tuple[int, int] = SIZE, *, bits: int = 8, color: int = RGB, rest: bytes = b"\0\0\0") -> bytes:
    return png(header(size, bits=bits, color=color, rest=rest), chunk(b"IDAT", zlib.compress(b"\0" * 100)))


def solid(size: tuple[int, int], mode: str = "RGB") -> bytes:
    return encode(Image.new(mode, size, 1 if mode == "1" else "teal"))


def with_text(add: str, *arguments: str, count: int = 1, **options: bool) -> bytes:
    info = PngImagePlugin.PngInfo()
    for _ in range(count):
        getattr(info, add)(*arguments, **options)
    return encode(quarters(), pnginfo=info)


def half(value: int) -> int:
    """An eight-bit value behind which white shines through, at an alpha of 128."""
    return (value * 128 + 255 * 127 + 127) // 255


HALF: Colors = tuple((half(r), half(g), half(b)) for r, g, b in COLORS)
BLACKS: Colors = ((0, 0, 0),) * 4


def first_white(colors: Colors) -> Colors:
    return ((255, 255, 255), *colors[1:])


def cases() -> list[Case]:
    shades: Colors = tuple((v * 85,) * 3 for v in range(4))
    steps: Colors = tuple((v * 17,) * 3 for v in (0, 5, 10, 15))
    return [
        good("PNG, RGB", plain),
        good("PNG, RGBA", lambda: encode(translucent(255))),
        good("PNG, RGBA, transparent", lambda: encode(translucent(0)), WHITES),
        good("PNG, RGBA, half transparent", lambda: encode(translucent(128)), HALF, tolerance=1),
        good("PNG, gray", lambda: encode(quarters(GRAYS).convert("L")), GRAYS),
        good("PNG, gray and alpha", lambda: encode(quarters(GRAYS).convert("LA")), GRAYS),
        good("PNG, gray and no alpha at all", lambda: encode(Image.merge("LA", [Image.new("L", SIZE, v) for v in (9, 0)])), WHITES),
        good("PNG, 1 bit", lambda: shallow(1, (0, 1, 0, 1)), BINARY),
        good("PNG, 1 bit, black is transparent", lambda: shallow(1, (0, 1, 0, 1), chunk(b"tRNS", b"\0\0")), WHITES),
        good("PNG, 1 bit, white is transparent", lambda: shallow(1, (0, 1, 0, 1), chunk(b"tRNS", b"\0\1")), BINARY),
        good("PNG, gray in 2 bits", lambda: shallow(2, (0, 1, 2, 3)), shades),
        good("PNG, gray in 2 bits, one transparent", lambda: shallow(2, (1, 0, 2, 3), chunk(b"tRNS", b"\0\1")), (WHITES[0], shades[0], *shades[2:])),
        good("PNG, gray in 4 bits", lambda: shallow(4, (0, 5, 10, 15)), steps),
        good("PNG, gray in 4 bits, one transparent", lambda: shallow(4, (5, 0, 10, 15), chunk(b"tRNS", b"\0\5")), (WHITES[0], steps[0], *steps[2:])),
        good("PNG, gray in 8 bits, one transparent", lambda: encode(quarters(GRAYS).convert("L"), transparency=20), first_white(GRAYS)),
        good("PNG, gray in 16 bits", lambda: deep(grays(), color=GRAY), GRAYS, tolerance=1),
        good("PNG, gray in 16 bits, one transparent", lambda: deep(grays(), color=GRAY, extra=(chunk(b"tRNS", bytes((20, 0x80))),)), first_white(GRAYS), tolerance=1),
        good("PNG, gray and alpha in 16 bits", lambda: deep(grays(), np.full_like(grays(), 255), color=GRAY_ALPHA), GRAYS, tolerance=1),
        good("PNG, RGB in 16 bits", lambda: deep(*color_bands(), color=RGB), tolerance=1),
        good("PNG, RGB in 16 bits, one transparent", lambda: deep(*color_bands(), color=RGB, extra=(chunk(b"tRNS", bytes((220, 0x80, 30, 0x80, 30, 0x80))),)), first_white(COLORS), tolerance=1),
        good("PNG, RGBA in 16 bits", lambda: deep(*color_bands(), np.full_like(grays(), 255), color=RGBA), tolerance=1),
        good("PNG, RGBA in 16 bits, transparent", lambda: deep(*color_bands(), np.zeros_like(grays()), color=RGBA), WHITES, tolerance=1),
        good("PNG, RGB, one transparent", lambda: encode(quarters(), transparency=COLORS[0]), first_white(COLORS)),
        good("PNG, palette", palette),
        good("PNG, palette, one transparent", lambda: palette(chunk(b"tRNS", b"\0")), first_white(COLORS)),
        good("PNG, palette, alpha for each", lambda: palette(chunk(b"tRNS", bytes((128,) * 4))), HALF, tolerance=1),
        good("PNG, palette, more alphas than colours", lambda: palette(chunk(b"tRNS", bytes((0, *[255] * 255)))), first_white(COLORS)),
        bad("PNG, palette, too small", lambda: shallow(2, (0, 1, 2, 3), chunk(b"PLTE", bytes(3)), color=PALETTE), 200, 422),
        bad("PNG, palette, none", lambda: shallow(2, (0, 1, 2, 3), color=PALETTE), 200, 422),
        bad("PNG, palette of 1000 bytes", lambda: shallow(2, (0, 1, 2, 3), chunk(b"PLTE", bytes(1000)), color=PALETTE), 200, 422),
        good("PNG, interlaced", interlaced),
        good("PNG, 10,000 IDAT", lambda: split(10_000)),
        *oriented("PNG", encode),
        good("PNG, orientation behind the pixels", lambda: plain(after=(chunk(b"eXIf", exif(3).tobytes()[6:]),)), COLORS[::-1]),
        good("PNG, broken Exif", lambda: plain(chunk(b"eXIf", b"II*\0\xff\xff\xff\xff"))),
        good("PNG, an orientation in XMP alone", lambda: with_text("add_itxt", "XML:com.adobe.xmp", '<x tiff:Orientation="6"/>')),
        good("PNG, an orientation in a raw profile alone", lambda: with_text("add_text", "Raw profile type exif", "\nexif\n  4\n49492a00")),
        bad("PNG, text of 64 MB in zTXt", lambda: plain(chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(2**26)))), 200, 422),
        bad("PNG, text of 64 MB in iTXt", lambda: plain(chunk(b"iTXt", b"a\0\1\0\0\0" + zlib.compress(bytes(2**26)))), 200, 422),
        bad("PNG, 200 texts of 1 MB", lambda: with_text("add_text", "a", "x" * 1_000_000, zip=True, count=200), 200, 422),
        bad("PNG, a profile of 64 MB", lambda: plain(chunk(b"iCCP", b"a\0\0" + zlib.compress(bytes(2**26)))), 200, 422),
        good("PNG, a profile that is none", lambda: plain(chunk(b"iCCP", b"a\0\0" + zlib.compress(b"none")))),
        good("PNG, a text called transparency", lambda: with_text("add_text", "transparency", "none")),
        good("PNG, a compressed text called exif", lambda: with_text("add_text", "exif", "none", zip=True)),
        good("PNG, 10,000 texts", lambda: with_text("add_text", "a", "b", count=10_000)),
        good("PNG, private chunks", lambda: plain(chunk(b"vpAg", bytes(9)), chunk(b"teSt", bytes(60_000)))),
        bad("PNG, an unknown critical chunk", lambda: plain(chunk(b"TEST", b"x")), 200, 422),
        bad("PNG, as Apple's compiler makes it (CgBI)", lambda: png(chunk(b"CgBI", b"P\0 \2"), header(), chunk(b"IDAT", zlib.compress(bytes(4 * 48 * 32 + 32))[2:-4]))),
        good("PNG, animated", lambda: encode(quarters(), frames=3)),
        good("PNG, animated, 1,000 frames", lambda: encode(quarters(), frames=1000)),
        bad("PNG, animated, of no frames", lambda: plain(chunk(b"acTL", bytes(8))), 200, 422),
        bad("PNG, animated, a frame outside", lambda: plain(chunk(b"acTL", struct.pack(">II", 2, 0)), chunk(b"fcTL", struct.pack(">IIIIIHHBB", 0, 9999, 9999, 9999, 9999, 1, 1, 0, 0))), 200, 422),
        *cuts("PNG", encode),
        bad("PNG, the first bytes", lambda: MAGIC),
        bad("PNG, header alone", lambda: png(header())),
        bad("PNG, no header", lambda: png(chunk(b"IDAT", zlib.compress(b"\0")))),
        bad("PNG, a wrong checksum of the header", lambda: MAGIC + header()[:-1] + b"\0" + plain()[33:]),
        bad("PNG, a wrong checksum of the pixels", lambda: plain()[:-16] + bytes(4) + plain()[-12:], 200, 422),
        bad("PNG, no end", lambda: plain()[:-12], 200, 422),
        bad("PNG, pixels that are not compressed", lambda: png(header(), chunk(b"IDAT", bytes(5000)))),
        bad("PNG, fewer pixels than claimed", claimed),
        bad("PNG, more pixels than claimed", lambda: png(header((8, 8)), chunk(b"IDAT", zlib.compress(bytes(5_000_000)))), 200, 422),
        bad("PNG, claims 60000 x 60000", lambda: claimed((60_000, 60_000))),
        bad("PNG, claims 2^31 - 1 a side", lambda: claimed((2**31 - 1, 2**31 - 1))),
        bad("PNG, claims 7000 x 7000", lambda: claimed((7000, 7000))),
        bad("PNG, width 0", lambda: claimed((0, 32))),
        bad("PNG, height 0", lambda: claimed((48, 0))),
        bad("PNG, 13377 x 13377 in 1 bit", lambda: solid((13_377, 13_377), "1")),
        *(bad(f"PNG, {w} x {h}", partial(solid, (w, h))) for w, h in ((1, 60_000), (60_000, 1), (2, 65_535), (1, 65), (16_385, 300))),
        *(good(f"PNG, {w} x {h}", partial(solid, (w, h)), None) for w, h in ((1, 1), (2, 2), (3, 3), (1, 64), (64, 1))),
        good("PNG, all black", lambda: encode(quarters(BLACKS)), BLACKS),
        good("PNG, all white", lambda: encode(quarters(WHITES)), WHITES),
        *(bad(f"PNG, {bits} bits of colour type {color}", partial(claimed, bits=bits, color=color)) for bits, color in ((3, 0), (8, 5), (16, 3), (0, 0), (255, 255))),
        *(bad(f"PNG, method {name}", partial(claimed, rest=rest)) for name, rest in {"of compression 1": b"\1\0\0", "of filtering 9": b"\0\x09\0", "of interlacing 9": b"\0\0\x09"}.items()),
        bad("PNG, a row filter of 9", lambda: png(header(), chunk(b"IDAT", zlib.compress((b"\x09" + bytes(144)) * 32)))),
        bad("PNG, a chunk of 2 GB", lambda: MAGIC + header() + b"\x7f\xff\xff\xffIDAT" + bytes(100)),
        bad("PNG, transparency of one byte", lambda: plain(chunk(b"tRNS", b"\0"))),
    ]  # fmt: skip
