"""app/images/metadata.py: scans are counted as libjpeg meets them, and only pixels and the orientation are left."""

import struct
from io import BytesIO

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from app.images.metadata import MAX_SEGMENTS, orientation, read_jpeg
from tests.catalogue.jpegs import EOI, SOI, directory, entry, exif_block, jpeg, scans, segment, several, spliced


def read(data: bytes, max_scans: int = 10_000):
    return read_jpeg(data, max_scans=max_scans)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (jpeg(), 1),
        (jpeg(restart_marker_blocks=1), 1),
        (jpeg(progressive=True), 10),  # libjpeg's own script: ten in colour, six in gray
        (jpeg(Image.new("L", (64, 64)), progressive=True), 6),
        (scans(70), 80),
        (several(), 1),  # those of the second picture are behind the end of the first
        (spliced(segment(0xE1, jpeg())), 1),  # that of a thumbnail in the Exif block is none of the picture
    ],
)
def test_scans_are_counted(data, expected):
    read(data, expected)
    with pytest.raises(ValueError, match=f"more than {expected - 1} scans"):
        read(data, expected - 1)


def test_what_is_left_decodes_to_the_same_pixels():
    noise = Image.fromarray(np.random.default_rng(1).integers(0, 256, (40, 60, 3), dtype=np.uint8))
    for options in ({}, {"progressive": True}, {"comment": b"secret"}, {"icc_profile": b"x" * 70_000}):
        data = spliced(*[segment(0xE0 + i, b"secret") for i in range(14)], picture=jpeg(noise, **options))
        bare = read(data).bare
        assert b"secret" not in bare
        assert (pixels(bare) == pixels(data)).all()


def pixels(data: bytes) -> np.ndarray:
    return np.asarray(Image.open(BytesIO(data)))


def test_the_first_exif_block_is_kept_apart():
    picture = read(spliced(segment(0xE1, b"http://"), exif_block(b"first"), exif_block(b"second")))
    assert picture.exif == b"first"
    assert b"first" not in picture.bare
    assert read(jpeg()).exif == b""


def test_the_jfif_marker_stays_for_colours_are_guessed_from_it():
    """Without it libjpeg takes components that are named R, G and B for RGB, and not for YCbCr."""
    named = bytearray(jpeg(Image.new("RGB", (8, 8), "teal")))
    for marker, first, step in ((b"\xff\xc0", 10, 3), (b"\xff\xda", 5, 2)):  # of the frame, of the scan
        at = named.index(marker)
        named[at + first : at + first + 3 * step : step] = b"RGB"
    bare = read(bytes(named)).bare
    assert (pixels(bare) == pixels(bytes(named))).all()
    assert abs(pixels(bare)[0, 0].astype(int) - (0, 128, 128)).max() <= 2


@pytest.mark.parametrize("start", [b"JFXX\0" + bytes(20), b"JFIF\0", b"JFIF\0" + bytes(8)])
def test_other_data_under_that_marker_is_left_out(start):
    assert len(read(spliced(segment(0xE0, start))).bare) == len(read(jpeg()).bare)


def test_a_file_of_nothing_but_markers_is_refused():
    for data in (spliced(segment(0xFE, b"") * (MAX_SEGMENTS + 1)), SOI + b"\xff\x01" * (MAX_SEGMENTS + 1)):
        with pytest.raises(ValueError, match=f"more than {MAX_SEGMENTS} segments"):
            read(data)


# The slow way to find markers, a byte at a time, as ITU-T T.81 describes them.
def slowly(data: bytes) -> int:
    count, at = 0, 2
    while at + 1 < len(data):
        if data[at] != 0xFF or data[at + 1] in (0x00, 0xFF, *range(0xD0, 0xD8)):
            at += 1
            continue
        marker = data[at + 1]
        at += 2
        if marker == 0xD9:
            break
        if marker in (0xD8, 0x01):
            continue
        count += marker == 0xDA
        at += max(int.from_bytes(data[at : at + 2], "big"), 2)
    return count


pieces = st.one_of(
    st.binary(max_size=20),
    st.sampled_from(
        [b"\xff\xda", b"\xff\xda\x00\x02", b"\xff", b"\xff\xff", b"\xff\x00", b"\xff\xd0", SOI, EOI, b"\xff\x01"]
    ),
    st.builds(segment, st.integers(0xC0, 0xFE), st.binary(max_size=40)),
)


@settings(max_examples=500, deadline=None)
@given(st.lists(pieces, max_size=30))
def test_whatever_the_bytes_the_count_is_that_of_the_slow_way(parts):
    data = SOI + b"".join(parts)
    scans = slowly(data)
    assert len(read(data, scans).bare) <= len(data)
    if scans:
        with pytest.raises(ValueError, match="scans"):
            read(data, scans - 1)


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
