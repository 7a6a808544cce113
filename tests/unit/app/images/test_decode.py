"""app/images/decode.py: what is accepted, what it looks like decoded, and that nothing else gets through."""

from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFile, _avif

from app.errors import UnsupportedType, UnusableImage
from app.images.colors import upright_rgb
from app.images.decode import AvifImage, Limits, opened, sniff
from tests.catalogue.avifs import claiming, crowded_exif
from tests.catalogue.case import encode, grain
from tests.unit.app.images.test_kinds import box

LIMITS = Limits(max_pixels=1_000_000, max_aspect_ratio=64)


def decode(data: bytes) -> tuple[Image.Image, str]:
    with opened(data, LIMITS) as (image, name):
        return upright_rgb(image), name


@pytest.mark.parametrize(
    "brands", [b"avif mif1 miaf MA1B", b"avis msf1 iso8", b"mif1 mif1 avif miaf", b"mif1 heic avif"]
)
def test_an_avif_is_known_by_any_of_its_brands(brands):
    assert sniff(box(*brands.split())) == "AVIF"


@pytest.mark.parametrize(
    "data",
    [b"\xff", b"\0" * 64, b"\x9a\x11\x02\xfe", b"RIFF\0\0\0\0ACON"],
)
def test_other_bytes_are_no_image_of_an_accepted_type(data):
    with pytest.raises(UnsupportedType, match=r"This is not an image of an accepted type: JPEG, .* or AVIF\.$"):
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


def test_too_many_scans_are_refused(monkeypatch):
    data = encode(Image.new("RGB", (16, 24), "red"), "JPEG", progressive=True)
    decode(data)
    monkeypatch.setattr("app.images.decode.MAX_SCANS", 9)
    monkeypatch.setattr("PIL.JpegImagePlugin.JpegImageFile._open", lambda self: pytest.fail("parsed"))
    with pytest.raises(UnusableImage, match="9 scans"):
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
