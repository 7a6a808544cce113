"""app/images/metadata.py: the orientation, and nothing but it."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from app.images.metadata import orientation
from tests.catalogue.jpegs import directory, entry


def block(value: object) -> bytes:
    exif = Image.Exif()
    exif[0x010F] = "a maker before it"
    exif[0x0112] = value
    return exif.tobytes()


@pytest.mark.parametrize("value", range(1, 9))
@pytest.mark.parametrize("order", ["<", ">"])
def test_it_is_what_was_written(value, order):
    assert orientation(block(value)) == value
    entry = struct.pack(f"{order}HHIHH", 0x0112, 3, 1, value, 0)
    magic = b"II*\0" if order == "<" else b"MM\0*"
    assert orientation(magic + struct.pack(f"{order}IH", 8, 1) + entry) == value


BROKEN = [b"", b"II", b"II*\0\xff\xff\xff\xff", b"XX*\0\x08\0\0\0", b"II*\0\x08\0\0\0\xff\xff"]
NOT_ONE_SHORT = [directory(entry(0x0112, kind, count, 6)) for kind, count in ((2, 1), (4, 1), (3, 2), (3, 0))]


@pytest.mark.parametrize("data", [*map(block, (0, 9, 65535)), *NOT_ONE_SHORT, *BROKEN])
def test_anything_else_is_upright(data):
    assert orientation(data) == 1


@given(st.binary(max_size=200), st.sampled_from([b"", b"II*\0", b"MM\0*", b"II*\0\x08\0\0\0\x03\0"]))
def test_it_never_fails(data, start):
    assert orientation(start + data) in range(1, 9)
