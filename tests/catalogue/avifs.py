"""AVIF: depths, subsampling, alpha, turns, grids, animation, and boxes that lie."""

import struct
from pathlib import Path
from typing import Any

from PIL import Image

from tests.catalogue.case import GRAYS, SIZE, WHITES, Case, bad, cuts, encode, good, oriented, quarters, translucent

ROUNDING = 3  # of one of 255, by the way to YCbCr and back
DEEP = Path(__file__).with_name("avif")  # images of imagecodecs; Pillow writes 8 bits
TILE = 64  # pixels; the smallest side of a tile in a grid


def avif(image: Image.Image | None = None, /, **options: Any) -> bytes:
    if isinstance(options.get("exif"), Image.Exif):  # Pillow takes the orientation out, so a second image had none
        options["exif"] = options["exif"].tobytes()
    return encode(image or quarters(), "AVIF", **{"quality": 100, "subsampling": "4:4:4", "speed": 10, **options})


def box(kind: bytes, *parts: bytes, size: int | None = None) -> bytes:
    data = b"".join(parts)
    return struct.pack(">I4s", 8 + len(data) if size is None else size, kind) + data


def full(kind: bytes, *parts: bytes, version: int = 0) -> bytes:
    return box(kind, struct.pack(">I", version << 24), *parts)


FTYP = box(b"ftyp", b"avif", bytes(4), b"avif", b"mif1miaf")


def content(data: bytes, kind: bytes) -> bytes:
    """Of the first box of this kind."""
    at = data.index(kind) - 4
    return data[at + 8 : at + int.from_bytes(data[at : at + 4], "big")]


def ispe(size: tuple[int, int]) -> bytes:
    return full(b"ispe", struct.pack(">II", *size))


def claiming(size: tuple[int, int], data: bytes | None = None) -> bytes:
    """An image that says that it has this size."""
    data = avif() if data is None else data
    at = data.index(b"ispe") - 4
    return data[:at] + ispe(size) + data[at + len(ispe(size)) :]


def without(kind: bytes, *, instead: bytes = b"free") -> bytes:
    return avif().replace(kind, instead)


def grid(size: tuple[int, int], rows: int, columns: int, *, tiles: list[int] | None = None) -> bytes:
    """Item 1 is a grid of item 2, as often as there are rows and columns. `tiles` are other items in its place."""
    tile = avif(Image.new("RGB", (TILE, TILE), "red"))
    description = struct.pack(">BBBBHH", 0, 0, rows - 1, columns - 1, *size)
    pixels = content(tile, b"mdat")
    count = rows * columns
    ids = list(range(2, 2 + count)) if tiles is None else tiles
    kinds = {1: b"grid"} | {id: b"av01" for id in ids if id != 1}
    properties = box(b"av1C", content(tile, b"av1C")), full(b"pixi", b"\3\10\10\10"), ispe((TILE, TILE)), ispe(size)
    of_kind = {b"grid": b"\4\2", b"av01": b"\x81\2\3"}  # an av1C is essential
    shares = [struct.pack(">HB", id, len(of_kind[kind])) + of_kind[kind] for id, kind in kinds.items()]
    infos = [full(b"infe", struct.pack(">HH4sB", id, 0, kind, 0), version=2) for id, kind in kinds.items()]

    def meta(start: int) -> bytes:
        places = {1: (start, len(description))}
        entries = [
            struct.pack(">HHHII", id, 0, 1, *places.get(id, (start + len(description), len(pixels)))) for id in kinds
        ]
        return full(
            b"meta",
            full(b"hdlr", bytes(4), b"pict", bytes(13)),
            full(b"pitm", b"\0\1"),
            full(b"iloc", b"\x44\0", struct.pack(">H", len(kinds)), *entries),
            full(b"iinf", struct.pack(">H", len(kinds)), *infos),
            full(b"iref", box(b"dimg", struct.pack(f">HH{len(ids)}H", 1, len(ids), *ids))),
            box(b"iprp", box(b"ipco", *properties), full(b"ipma", struct.pack(">I", len(kinds)), *shares)),
        )

    head = FTYP + meta(0)
    return FTYP + meta(len(head) + 8) + box(b"mdat", description, pixels)


def turned_by_exif_alone() -> bytes:
    """Pillow writes an orientation as boxes, so another tag is written, and renamed."""
    block = Image.Exif()
    block[0x0113] = 6
    one_number = struct.pack("<HI", 3, 1)
    return avif(exif=block).replace(b"\x13\x01" + one_number, b"\x12\x01" + one_number)


def crowded_exif() -> bytes:
    """A directory of as many entries as it can have, and each has the whole block as its value."""
    count, start = 65_535, b"II*\0\x08\0\0\0"
    empty = start + bytes(2 + 12 * count)
    entries = b"".join(struct.pack("<HHII", tag, 1, len(empty) - 8, 8) for tag in range(count))
    return avif(exif=empty).replace(empty, start + struct.pack("<H", count) + entries)


def cases() -> list[Case]:
    return [
        good("AVIF", avif, tolerance=ROUNDING),
        good("AVIF, 4:2:0", lambda: avif(subsampling="4:2:0", quality=95), tolerance=12),
        good("AVIF, gray", lambda: avif(quarters(GRAYS).convert("L"), subsampling="4:0:0"), GRAYS, tolerance=ROUNDING),
        good("AVIF, 10 bits", (DEEP / "10_bits.avif").read_bytes, tolerance=ROUNDING),
        good("AVIF, 12 bits and 4:2:0", (DEEP / "12_bits.avif").read_bytes, tolerance=12),
        good("AVIF, 12 bits of gray", (DEEP / "12_bits_of_gray.avif").read_bytes, GRAYS, tolerance=ROUNDING),
        good("AVIF, limited range", lambda: avif(range="limited"), tolerance=ROUNDING),
        good("AVIF, transparent", lambda: avif(translucent(0)), WHITES),
        good("AVIF, transparent and premultiplied", lambda: avif(translucent(0), alpha_premultiplied=True), WHITES),
        good("AVIF, animated", lambda: avif(frames=3), tolerance=ROUNDING),
        good("AVIF, animated, 100 frames", lambda: avif(frames=100), tolerance=ROUNDING),
        *oriented("AVIF", avif, tolerance=ROUNDING),
        good("AVIF, an orientation in Exif alone", turned_by_exif_alone, tolerance=ROUNDING),
        good("AVIF, an orientation in XMP alone", lambda: avif(xmp=b'<x tiff:Orientation="6"/>'), tolerance=ROUNDING),
        good("AVIF, Exif of 65,535 entries", crowded_exif, tolerance=ROUNDING),
        good("AVIF, a broken profile", lambda: avif(icc_profile=b"x" * 1000), tolerance=ROUNDING),
        good("AVIF, 1 x 1", lambda: avif(Image.new("RGB", (1, 1))), None),
        good("AVIF, a grid", lambda: grid((2 * TILE, TILE), 1, 2), None),
        good("AVIF, a brand of images in general", lambda: avif().replace(b"ftypavif", b"ftypmif1"), tolerance=ROUNDING),
        bad("AVIF, a grid of itself", lambda: grid((TILE, TILE), 1, 1, tiles=[1])),
        bad("AVIF, a grid without tiles", lambda: grid((2 * TILE, TILE), 1, 2, tiles=[])),
        bad("AVIF, a grid of 256 x 256 tiles, each of them the same", lambda: grid((16_384, 16_384), 256, 256, tiles=[2])),
        bad("AVIF, a grid that claims 16384 x 16384", lambda: grid((16_384, 16_384), 1, 2)),
        *cuts("AVIF", avif),
        bad("AVIF, the first bytes", lambda: FTYP),
        bad("AVIF, a brand and zeros", lambda: b"\0\0\0\x1cftypavif" + bytes(50)),
        bad("AVIF, claims 16383 x 16383", lambda: claiming((16_383, 16_383))),
        bad("AVIF, claims 2^31 a side", lambda: claiming((2**31, 2**31))),
        bad("AVIF, claims 0 x 0", lambda: claiming((0, 0))),
        bad("AVIF, pixels of another size", lambda: claiming((500, 500)), 200, 422),
        bad("AVIF, two megapixels behind a claim of 48 x 32", lambda: claiming(SIZE, avif(Image.new("RGB", (1600, 1250)))), 200, 422),
        bad("AVIF, 300 x 1", lambda: avif(Image.new("RGB", (300, 1)))),
        bad("AVIF, no pixels", lambda: avif().partition(b"mdat")[0] + b"mdat"),
        bad("AVIF, pixels of HEVC", lambda: without(b"av01", instead=b"hvc1")),
        bad("AVIF, without a configuration", lambda: without(b"av1C")),
        bad("AVIF, without a size", lambda: without(b"ispe")),
        bad("AVIF, without a place of its pixels", lambda: without(b"iloc")),
        bad("AVIF, a box of 4 GB", lambda: FTYP + box(b"meta", bytes(50), size=0xFFFFFFFF)),
        bad("AVIF, a box of nothing", lambda: FTYP + box(b"meta", bytes(50), size=1)),
        bad("AVIF, 100,000 boxes", lambda: FTYP + box(b"free") * 100_000),
        bad("AVIF, said to be animated", lambda: avif().replace(b"ftypavif", b"ftypavis"), 200, 422),
        bad("AVIF, 1 kB behind the end", lambda: avif() + bytes(1000), 200, 422),
    ]  # fmt: skip
