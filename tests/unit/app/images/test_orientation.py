"""app/images/orientation.py: what a camera writes is read, and whatever else is there is upright."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.images.orientation import orientation
from tests.catalogue.jpegs import directory, entry


@pytest.mark.parametrize("value", range(1, 9))
def test_the_orientation_is_what_was_written_in_either_order_of_bytes(value):
    assert orientation(directory(entry(0x010F, 2, 1, 0), entry(0x0112, 3, 1, value))) == value
    assert orientation(b"MM\0*" + struct.pack(">IHHHIHH", 8, 1, 0x0112, 3, 1, value, 0)) == value


@pytest.mark.parametrize(
    ("kind", "count", "value"), [(2, 1, 6), (4, 1, 6), (3, 2, 6), (3, 0, 6), (3, 1, 0), (3, 1, 9), (3, 1, 65535)]
)
def test_anything_else_than_one_short_from_1_to_8_is_upright(kind, count, value):
    assert orientation(directory(entry(0x0112, kind, count, value))) == 1


@given(st.binary(max_size=200), st.sampled_from([b"", b"II*\0", b"MM\0*", b"II*\0\x08\0\0\0\x03\0"]))
def test_reading_the_orientation_never_fails(data, start):
    assert orientation(start + data) in range(1, 9)
