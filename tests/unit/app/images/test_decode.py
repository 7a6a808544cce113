"""app/images/decode.py: what is accepted, what it looks like decoded, and that nothing else gets through."""

from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFile, _avif

from app.errors import UnsupportedType, UnusableImage
from app.images.colors import upright_rgb
from app.images.decode import HEIC_HINT, AvifImage, Limits, opened, sniff
from tests.catalogue.avifs import claiming, crowded_exif
from tests.catalogue.case import encode, grain

LIMITS = Limits(max_pixels=1_000_000, max_aspect_ratio=64)


def decode(data: bytes) -> tuple[Image.Image, str]:
    with opened(data, LIMITS) as (image, name):
        return upright_rgb(image), name


def box(*brands: bytes) -> bytes:
    """The first box of a file of the family of MP4."""
    return (12 + 4 * len(brands)).to_bytes(4, "big") + b"ftyp" + brands[0] + bytes(4) + b"".join(brands[1:]) + bytes(64)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (box(b"heic", b"mif1", b"MiHB", b"MiHE", b"MiPr", b"miaf", b"heic", b"tmap"), "HEIC"),  # an iPhone
        (box(b"heix", b"mif1", b"heix"), "HEIC"),
        (box(b"mif1", b"mif1", b"heic"), "HEIC"),
        (box(b"msf1", b"hevc"), "HEIC"),
        (b"\xff\x0a" + bytes(50), "JPEG XL"),
        (b"\0\0\0\x0cJXL \r\n\x87\n", "JPEG XL"),
        (box(b"isom", b"iso2", b"avc1", b"mp41"), "a video"),
        (box(b"qt  ", b"qt  "), "a video"),
        (b"\x1a\x45\xdf\xa3\x9fB\x86\x81\x01", "a video"),
        (b"%PDF-1.7\n", "PDF"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "SVG"),
        (b'\xef\xbb\xbf<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE svg [', "SVG"),
    ],
)
def test_a_file_that_people_send_by_mistake_is_named(data, kind):
    with pytest.raises(UnsupportedType) as refusal:
        sniff(data)
    hint = HEIC_HINT if kind == "HEIC" else ""
    assert refusal.value.detail == f"This is {kind}. Send JPEG, PNG, WebP, GIF, BMP, TIFF or AVIF.{hint}"


@pytest.mark.parametrize(
    "brands", [b"avif mif1 miaf MA1B", b"avis msf1 iso8", b"mif1 mif1 avif miaf", b"mif1 heic avif"]
)
def test_an_avif_is_known_by_any_of_its_brands(brands):
    assert sniff(box(*brands.split())) == "AVIF"


@pytest.mark.parametrize(
    "data",
    [box(b"crx ", b"crx ", b"isom"), b"<?xml version='1.0'?><html>", b"<html><svg>", b"ftyp", b"\xff", b"\0" * 64],
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
