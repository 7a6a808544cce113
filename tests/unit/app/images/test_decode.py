"""app/images/decode.py: what is accepted, what it looks like decoded, and that nothing else gets through."""

import struct
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFile, _avif

from app.errors import UnsupportedType, UnusableImage
from app.images.colors import upright_rgb
from app.images.decode import AvifImage, Limits, opened, orientation, scans_of, sniff
from tests.catalogue.avifs import claiming, crowded_exif
from tests.catalogue.case import encode, grain
from tests.catalogue.jpegs import EOI, SOI, directory, entry, jpeg, segment, several, spliced

LIMITS = Limits(max_pixels=1_000_000, max_aspect_ratio=64)


def decode(data: bytes) -> tuple[Image.Image, str]:
    with opened(data, LIMITS) as (image, name):
        return upright_rgb(image), name


@pytest.mark.parametrize(
    ("data", "said"),
    [
        *((data, "This is not JPEG") for data in (b"\xff", bytes(64), b"\x9a\x11\x02\xfe", b"RIFF\0\0\0\0ACON")),
        (b"a note", "This is text, not JPEG"),
    ],
)
def test_other_bytes_are_no_image_of_an_accepted_type(data, said):
    with pytest.raises(UnsupportedType, match=rf"^{said}, .* or AVIF\.$"):
        sniff(data)


def blank(*size: int) -> bytes:
    return encode(Image.new("1", size), "PNG")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (blank(1001, 1000), "1000000 pixels"),
        (claiming((1001, 1000)), "1000000 pixels"),  # an AVIF
        (blank(65, 1), "64 times"),
        (blank(16385, 60), "16384 pixels"),
    ],
)
def test_an_image_beyond_a_limit_is_refused_before_it_is_decoded(monkeypatch, data, words):
    assert decode(blank(64, 1))[0].size == (64, 1)
    for kind in (Image.Image, ImageFile.ImageFile, AvifImage):
        monkeypatch.setattr(kind, "load", lambda self: pytest.fail("decoded"))
    with pytest.raises(UnusableImage, match=words):
        decode(data)


def test_the_exif_of_an_avif_is_not_read(monkeypatch):
    data = crowded_exif()
    monkeypatch.setattr(Image.Exif, "load", lambda self, data: pytest.fail("read"))
    assert decode(data)[0].size == (48, 32)


def test_an_avif_is_decoded_in_one_thread(monkeypatch):
    decoders = Mock(wraps=_avif.AvifDecoder)
    monkeypatch.setattr(_avif, "AvifDecoder", decoders)
    decode(SAMPLES["AVIF"])
    assert [call.args[1:] for call in decoders.mock_calls] == [("dav1d", 1)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (jpeg(restart_marker_blocks=1), 1),
        (jpeg(progressive=True), 10),  # libjpeg's own script
        (several(), 1),  # those of the second picture are behind the end of the first
        (spliced(segment(0xE1, jpeg())), 1),  # that of a thumbnail in the Exif block is none of the picture
    ],
)
def test_too_many_scans_are_refused_before_pillow_sees_them(monkeypatch, data, expected):
    monkeypatch.setattr("app.images.decode.MAX_SCANS", expected)
    decode(data)
    monkeypatch.setattr("app.images.decode.MAX_SCANS", expected - 1)
    monkeypatch.setattr("PIL.JpegImagePlugin.JpegImageFile._open", lambda self: pytest.fail("parsed"))
    with pytest.raises(UnusableImage, match=f"more than {expected - 1} scans"):
        decode(data)


SAMPLES = {format: encode(grain(), format) for format in ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "AVIF")}


@settings(max_examples=300, deadline=None)
@given(format=st.sampled_from(sorted(SAMPLES)), data=st.data())
def test_damaged_files_decode_or_are_refused_and_nothing_else(format, data):
    damaged = bytearray(SAMPLES[format])
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(1, len(damaged)))
    try:
        image, _ = decode(bytes(damaged[:cut]))
    except (UnsupportedType, UnusableImage):
        return
    assert image.mode == "RGB"


@pytest.mark.parametrize("format", sorted(SAMPLES))
def test_a_file_that_is_cut_short_cannot_be_decoded(format):
    for size in range(40, len(SAMPLES[format]) * 3 // 4, 97):
        with pytest.raises(UnusableImage, match=f"^This looks like {sniff(SAMPLES[format])} but cannot be decoded"):
            decode(SAMPLES[format][:size])


def test_a_jpeg_without_its_end_cannot_be_decoded():
    """As where networks are trained: nothing is made up for it."""
    for whole in (jpeg(), jpeg(progressive=True), jpeg(restart_marker_blocks=1)):
        with pytest.raises(UnusableImage, match=r"^This looks like JPEG but cannot be decoded\.$"):
            decode(whole[:-2])


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
def test_scans_are_counted_as_in_the_slow_way(parts):
    data = SOI + b"".join(parts)
    assert scans_of(data) == slowly(data)


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
