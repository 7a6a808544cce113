"""TIFF: every kind of sample, by value; compressions; and directories that loop, point nowhere or never end."""

import struct
from functools import partial
from typing import Any

import numpy as np
from PIL import Image, TiffImagePlugin

from tests.catalogue.case import BINARY, GRAYS, SIZE, WHITES, Case, bad, cuts, encode, good, grays, oriented, quarters
from tests.catalogue.jpegs import entry

SHORT, LONG, UNDEFINED = 3, 4, 7


def tiff(image: Image.Image | None = None, /, **options: Any) -> bytes:
    return encode(image or quarters(), "TIFF", **options)


def raw(
    pixels: bytes,
    *,
    bits: int,
    photometric: int,
    sample: int = 1,
    samples: int = 1,
    extra: tuple[bytes, ...] = (),
    following: int = 0,
) -> bytes:
    """Without compression, in one strip, every sample of `bits`."""
    start = 8 + len(pixels)
    depths = start + 2 + 12 * 9 + 4  # where several samples come with no extra
    standard = (
        entry(256, SHORT, 1, SIZE[0]), entry(257, SHORT, 1, SIZE[1]),
        entry(258, SHORT, samples, bits if samples == 1 else depths),
        entry(262, SHORT, 1, photometric), entry(273, LONG, 1, 8), entry(277, SHORT, 1, samples),
        entry(278, SHORT, 1, SIZE[1]), entry(279, LONG, 1, len(pixels)), entry(339, SHORT, 1, sample),
    )  # fmt: skip
    entries = {
        each[:2]: each for each in (*standard, *extra)
    }.values()  # those of `extra` in place of the standard ones
    listed = struct.pack("<H", len(entries)) + b"".join(entries) + struct.pack("<I", following)
    return b"II*\0" + struct.pack("<I", start) + pixels + listed + struct.pack(f"<{samples}H", *[bits] * samples)


def twelve() -> bytes:
    """Two samples in three bytes."""
    values = (grays().astype(int) * 4095 // 255).reshape(-1, 2)
    first, second = values.T
    return np.stack([first >> 4, (first & 15) << 4 | second >> 8, second & 255], -1).astype(np.uint8).tobytes()


def lab() -> bytes:
    """CIELAB of the colours (D50), from littleCMS: `ImageCms` with its own sRGB and LAB profiles."""
    from PIL import ImageCms

    to_lab = ImageCms.buildTransform(ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB"), "RGB", "LAB")
    converted = ImageCms.applyTransform(quarters(), to_lab)
    assert converted is not None
    return tiff(converted)


def floats(values: np.ndarray) -> bytes:
    return tiff(Image.fromarray(values.astype(np.float32)))


def odd_floats() -> bytes:
    values = grays() / 255
    values[0, :4] = (np.nan, np.inf, -np.inf, -1e30)
    return floats(values)


def tagged(tags: dict[int, bytes]) -> bytes:
    listed = TiffImagePlugin.ImageFileDirectory_v2()
    for tag, value in tags.items():
        listed[tag] = value
        listed.tagtype[tag] = UNDEFINED
    return tiff(tiffinfo=listed)


def many_tags() -> bytes:
    """4,000 tags of which each is the whole of 2 MB."""
    extra = tuple(entry(40_000 + i, UNDEFINED, 2_000_000, 8) for i in range(4000))
    return raw(bytes(2_000_000), bits=8, photometric=1, extra=extra)


def loop() -> bytes:
    return raw(grays().tobytes(), bits=8, photometric=1, following=8 + grays().size)


def cases() -> list[Case]:
    ramp = grays().astype(np.uint16) << 8 | 0x80
    return [
        *(good(f"TIFF, {name}", partial(tiff, **options)) for name, options in {
            "uncompressed": {}, "LZW": {"compression": "tiff_lzw"}, "deflate": {"compression": "tiff_adobe_deflate"},
            "PackBits": {"compression": "packbits"}, "big-endian deflate": {"compression": "tiff_deflate"},
        }.items()),
        good("TIFF, JPEG inside", lambda: tiff(compression="jpeg", quality=95), tolerance=40),
        good("TIFF, 1 bit", lambda: tiff(quarters(BINARY).convert("1")), BINARY),
        good("TIFF, 1 bit, as a fax", lambda: tiff(quarters(BINARY).convert("1"), compression="group4"), BINARY),
        good("TIFF, gray", lambda: tiff(quarters(GRAYS).convert("L")), GRAYS),
        good("TIFF, gray, white is zero", lambda: raw((255 - grays()).tobytes(), bits=8, photometric=0), GRAYS),
        good("TIFF, gray and alpha", lambda: tiff(Image.merge("LA", [Image.new("L", SIZE, v) for v in (9, 0)])), WHITES),
        good("TIFF, palette", lambda: tiff(quarters().quantize(4))),
        good("TIFF, palette and alpha", lambda: tiff(Image.new("RGBA", SIZE, (1, 2, 3, 0)).convert("PA")), WHITES),
        good("TIFF, RGBA", lambda: tiff(Image.merge("RGBA", [*quarters().split(), Image.new("L", SIZE, 0)])), WHITES),
        good("TIFF, CMYK", lambda: tiff(quarters().convert("CMYK"))),
        good("TIFF, YCbCr", lambda: raw(quarters().convert("YCbCr").tobytes(), bits=8, photometric=6, samples=3), tolerance=3),
        good("TIFF, CIELAB", lab, tolerance=4),
        good("TIFF, gray in 16 bits", lambda: tiff(Image.fromarray(ramp)), GRAYS, tolerance=1),
        good("TIFF, gray in 16 bits, big-endian", lambda: tiff(Image.frombytes("I;16B", SIZE, ramp.astype(">u2").tobytes())), GRAYS, tolerance=1),
        good("TIFF, gray in 16 bits, white is zero", lambda: raw((65535 - ramp).tobytes(), bits=16, photometric=0), GRAYS, tolerance=1),
        good("TIFF, gray in 12 bits", lambda: raw(twelve(), bits=12, photometric=1), GRAYS, tolerance=1),
        good("TIFF, gray in 16 bits with a sign", lambda: raw(ramp.astype("<i4").clip(0, 32767).astype("<i2").tobytes(), bits=16, photometric=1, sample=2), None),
        good("TIFF, gray in 32 bits", lambda: tiff(Image.fromarray(ramp.astype(np.int32))), GRAYS, tolerance=1),
        good("TIFF, gray in 32 bits without a sign", lambda: raw(np.where(grays() == 250, 2**32 - 1, ramp).astype("<u4").tobytes(), bits=32, photometric=1), GRAYS, tolerance=5),
        good("TIFF, RGB in 16 bits", lambda: raw((np.asarray(quarters()).astype("<u2") << 8 | 0x80).tobytes(), bits=16, photometric=2, samples=3), tolerance=1),
        good("TIFF, floats up to 1", lambda: floats(grays() / 255), GRAYS, tolerance=1),
        good("TIFF, floats up to 255", lambda: floats(grays()), GRAYS, tolerance=1),
        good("TIFF, floats that are not numbers", odd_floats, GRAYS, tolerance=1),
        good("TIFF, floats that are all no numbers", lambda: floats(np.full((32, 48), np.nan)), ((0, 0, 0),) * 4),
        *oriented("TIFF", tiff),
        good("TIFF, two pictures", lambda: tiff(save_all=True, append_images=[Image.new("RGB", SIZE)])),
        good("TIFF, private tags of 1 MB", lambda: tagged({65_000: bytes(1_000_000)})),
        good("TIFF, 4,000 tags of the same 2 MB", many_tags, None),
        good("TIFF, a directory that is its own successor", loop, None),
        bad("TIFF, a directory behind the end", lambda: b"II*\0\xff\xff\xff\x7f" + bytes(100)),
        bad("TIFF, a directory in the header", lambda: b"II*\0\0\0\0\0" + bytes(100)),
        bad("TIFF, a directory of 65535 entries", lambda: b"II*\0\x08\0\0\0\xff\xff" + bytes(2000)),
        bad("TIFF, claims 2^32 - 1 a side", lambda: raw(bytes(100), bits=8, photometric=1, extra=(entry(256, LONG, 1, 2**32 - 1), entry(257, LONG, 1, 2**32 - 1)))),
        bad("TIFF, claims 7000 x 7000", lambda: raw(bytes(100), bits=8, photometric=1, extra=(entry(256, LONG, 1, 7000), entry(257, LONG, 1, 7000)))),
        bad("TIFF, a strip behind the end", lambda: raw(grays().tobytes(), bits=8, photometric=1, extra=(entry(273, LONG, 1, 2**31),))),
        bad("TIFF, a strip of no bytes", lambda: raw(b"", bits=8, photometric=1)),
        bad("TIFF, 65535 samples", lambda: raw(bytes(100), bits=8, photometric=1, extra=(entry(277, SHORT, 1, 65535),))),
        bad("TIFF, compression 65535", lambda: raw(grays().tobytes(), bits=8, photometric=1, extra=(entry(259, SHORT, 1, 65535),))),
        bad("TIFF, LZW that is none", lambda: raw(b"\xff" * 2000, bits=8, photometric=1, extra=(entry(259, SHORT, 1, 5),))),
        bad("TIFF, old JPEG that is none", lambda: raw(b"\xff" * 2000, bits=8, photometric=6, extra=(entry(259, SHORT, 1, 6),))),
        bad("TIFF, tiles of no size", lambda: raw(grays().tobytes(), bits=8, photometric=1, extra=(entry(322, LONG, 1, 0), entry(323, LONG, 1, 0), entry(324, LONG, 1, 8))), 200, 422),
        bad("TIFF, tiles of 2^31 a side", lambda: raw(grays().tobytes(), bits=8, photometric=1, extra=(entry(322, LONG, 1, 2**31), entry(323, LONG, 1, 2**31), entry(324, LONG, 1, 8))), 200, 422),
        *cuts("TIFF", tiff),
        bad("TIFF, the first bytes", lambda: b"II*\0"),
        bad("TIFF of more than 4 GB (BigTIFF)", lambda: b"II+\0\x08\0\0\0" + bytes(100), 415),
    ]  # fmt: skip
