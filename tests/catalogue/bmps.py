"""BMP: depths, both directions, run lengths, and headers that lie."""

import struct
from functools import partial

import numpy as np
from PIL import Image

from tests.catalogue.case import BINARY, COLORS, GRAYS, SIZE, Case, bad, cuts, encode, good, quarters


def bmp(
    pixels: bytes,
    *,
    size: tuple[int, int] = SIZE,
    bits: int = 24,
    compression: int = 0,
    palette: bytes = b"",
    used: int = 0,
    header: int = 40,
) -> bytes:
    start = 54 + len(palette)
    info = struct.pack("<IiiHHIIiiII", header, *size, 1, bits, compression, len(pixels), 0, 0, used, 0)
    return b"BM" + struct.pack("<IHHI", start + len(pixels), 0, 0, start) + info + palette + pixels


def lines(*, down: bool = False) -> bytes:
    picture = np.asarray(quarters())[..., ::-1]
    return (picture if down else picture[::-1]).tobytes()


def runs() -> bytes:
    """The quarters as run lengths, from the last line up."""
    line = {y: bytes((24, 2 * y, 24, 2 * y + 1, 0, 0)) for y in (0, 1)}
    return line[1] * 16 + line[0] * 16 + b"\0\1"


PALETTE = b"".join(bytes((*color[::-1], 0)) for color in COLORS)


def cases() -> list[Case]:
    return [
        good("BMP, 24 bits", lambda: bmp(lines())),
        good("BMP, from the top down", lambda: bmp(lines(down=True), size=(48, -32))),
        good("BMP, with a number of its program", lambda: b"%b%b%b" % (bmp(lines())[:6], b"\1\2\3\4", bmp(lines())[10:])),
        good("BMP, gray", lambda: encode(quarters(GRAYS).convert("L"), "BMP"), GRAYS),
        good("BMP, 1 bit", lambda: encode(quarters(BINARY).convert("1"), "BMP"), BINARY),
        good("BMP, palette", lambda: encode(quarters().quantize(4), "BMP")),
        good("BMP, run lengths", lambda: bmp(runs(), bits=8, compression=1, palette=PALETTE, used=4)),
        good("BMP, 32 bits", lambda: bmp(np.dstack([np.asarray(quarters())[::-1, :, ::-1], np.zeros((32, 48), np.uint8)]).tobytes(), bits=32)),
        bad("BMP, run lengths beyond the line", lambda: bmp(b"\xff\0" * 5000, bits=8, compression=1, palette=PALETTE, used=4), 200, 422),
        bad("BMP, run lengths that jump out", lambda: bmp(b"\0\2\xff\xff" * 5000, bits=8, compression=1, palette=PALETTE, used=4), 200, 422),
        bad("BMP, claims 2^31 - 1 a side", lambda: bmp(lines(), size=(2**31 - 1, 2**31 - 1))),
        bad("BMP, a negative width", lambda: bmp(lines(), size=(-48, 32))),
        bad("BMP, no width", lambda: bmp(lines(), size=(0, 32))),
        bad("BMP, claims 7000 x 7000", lambda: bmp(lines(), size=(7000, 7000))),
        bad("BMP, 1 x 16000", lambda: bmp(bytes(64_000), size=(1, 16_000))),
        *(bad(f"BMP, {bits} bits", partial(bmp, lines(), bits=bits)) for bits in (0, 3, 64, 255)),
        bad("BMP, compression 9", lambda: bmp(lines(), compression=9)),
        bad("BMP, a JPEG inside", lambda: bmp(encode(quarters(), "JPEG"), compression=4)),
        bad("BMP, a header of 4 GB", lambda: bmp(lines(), header=0xFFFFFFFF)),
        bad("BMP, 2^32 colours", lambda: bmp(lines(), bits=8, used=0xFFFFFFFF)),
        *cuts("BMP", lambda _: bmp(lines())),
        bad("BMP, the first bytes", lambda: b"BM" + bytes(12)),
        good("BMP, 1 kB behind the end", lambda: bmp(lines()) + bytes(1000)),
        good("BMP, noise", lambda: encode(Image.effect_noise((64, 64), 99), "BMP"), None),
    ]  # fmt: skip
