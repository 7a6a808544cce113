"""GIF: palettes, transparency, interlacing, animation, and frames that do not fit."""

import struct

from PIL import Image

from tests.catalogue.case import COLORS, SIZE, Case, bad, cuts, encode, good, quarters

TABLE = bytes(value for color in COLORS for value in color)


def screen(size: tuple[int, int] = SIZE, *, table: bytes = TABLE) -> bytes:
    """Header, and a palette of four colours."""
    return b"GIF89a" + struct.pack("<HHBBB", *size, 0x91 if table else 0x11, 0, 0) + table


def frame(size: tuple[int, int] = SIZE, at: tuple[int, int] = (0, 0), *, interlaced: bool = False) -> bytes:
    """The quarters, in colours of the screen's palette, as Pillow writes them."""
    picture = Image.new("P", (2, 2))
    picture.putdata((0, 1, 2, 3))
    picture.putpalette(TABLE)
    data = encode(picture.resize(size, Image.Resampling.NEAREST), "GIF", interlace=interlaced, optimize=False)
    behind_place = data.index(b"," + struct.pack("<HHHH", 0, 0, *size)) + 5
    return b"," + struct.pack("<HH", *at) + data[behind_place:-1]


def gif(*blocks: bytes) -> bytes:
    return b"".join(blocks) + b";"


def control(transparent: int) -> bytes:
    return b"!\xf9\x04\x01\0\0" + bytes((transparent, 0))


def comment(times: int) -> bytes:
    return b"!\xfe" + (b"\xff" + b"x" * 255) * times + b"\0"


def cases() -> list[Case]:
    return [
        good("GIF, as Pillow makes it", lambda: encode(quarters(), "GIF")),
        good("GIF", lambda: gif(screen(), frame())),
        good("GIF, interlaced", lambda: gif(screen(), frame(interlaced=True))),
        good("GIF, one transparent", lambda: gif(screen(), control(0), frame()), ((255, 255, 255), *COLORS[1:])),
        good("GIF, version 87a", lambda: gif(screen().replace(b"89a", b"87a"), frame())),
        good("GIF, 10,000 frames", lambda: gif(screen(), frame(), *[frame((2, 2))] * 10_000)),
        good("GIF, a comment of 2.5 MB", lambda: gif(screen(), comment(10_000), frame())),
        good("GIF, 10,000 comments", lambda: gif(screen(), *[comment(1)] * 10_000, frame())),
        bad("GIF, no palette", lambda: gif(screen(table=b""), frame()), 200, 422),
        bad("GIF, a frame larger than the screen", lambda: gif(screen((4, 4)), frame()), 200, 422),
        bad("GIF, a frame of 65535 x 65535", lambda: gif(screen(), frame().replace(struct.pack("<HH", *SIZE), b"\xff" * 4))),
        bad("GIF, a frame far outside", lambda: gif(screen(), frame(at=(65_000, 65_000)))),
        bad("GIF, a screen of 65535 x 65535", lambda: gif(screen((65_535, 65_535)), frame())),
        bad("GIF, a screen of nothing", lambda: gif(screen((0, 0)), frame()), 200, 422),
        bad("GIF, no frame", lambda: gif(screen())),
        bad("GIF, a frame of no pixels", lambda: gif(screen(), frame()[:10] + b"\2\0"), 422),
        bad("GIF, codes of 255 bits", lambda: gif(screen(), frame()[:10] + b"\xff" + frame()[11:])),
        bad("GIF, codes that point ahead", lambda: gif(screen(), frame()[:10] + b"\2\xff" + b"\xff" * 255 + b"\0"), 200, 422),
        bad("GIF, an extension without an end", lambda: screen() + b"!\xfe" + b"\xff" * 5000),
        *cuts("GIF", lambda _: encode(Image.effect_noise(SIZE, 90), "GIF"))[:3],
        bad("GIF, the first bytes", lambda: b"GIF89a"),
        good("GIF, 1 kB behind the end", lambda: gif(screen(), frame()) + bytes(1000)),
    ]  # fmt: skip
