"""app/images/decode.py: what is accepted, what it looks like decoded, and that nothing else gets through."""

import re
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFile, _avif

from app.errors import UnsupportedType, UnusableImage
from app.images.colors import upright_rgb
from app.images.cut import CUT
from app.images.decode import AvifImage, Limits, opened, sniff
from tests.catalogue.avifs import claiming, crowded_exif
from tests.catalogue.case import encode, grain
from tests.catalogue.jpegs import FILM, frame_at, jpeg, patched
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


@pytest.mark.parametrize("errors", ["replace", "ignore", ""])
@pytest.mark.parametrize("type", ["JPEG", "PNG", "WEBP", "AVIF"])
def test_an_image_that_was_decoded_as_text_is_named(type, errors):
    """As UTF-8 or, without `errors`, as Latin-1. The letters by which some types are known survive."""
    image = encode(grain(), type)
    text = image.decode("utf-8" if errors else "latin-1", errors or "strict").encode()
    with pytest.raises(
        (UnsupportedType, UnusableImage), match=r"^This is an image that was decoded as text on its way: "
    ):
        decode(text)


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


STAR = Path("docs/star.jpg").read_bytes()
PICTURE = Image.open(BytesIO(STAR)).convert("RGB").resize((135, 99))
JPEGS = [STAR] + [
    encode(image, "JPEG", **options)
    for image in (PICTURE, PICTURE.convert("L"), grain())
    for options in (
        {}, {"progressive": True}, {"restart_marker_blocks": 3}, {"progressive": True, "restart_marker_rows": 1},
        {"quality": 100, "subsampling": 0}, {"optimize": True},
    )
]  # fmt: skip


@pytest.mark.parametrize("whole", JPEGS)
def test_a_jpeg_that_lacks_its_end_alone_has_all_pixels_and_one_that_lacks_more_is_called_cut(whole):
    pixels = decode(whole)[0].tobytes()
    bare = whole[:-2]
    for behind in (b"", b"\xff", bytes(64), bytes(5000), b"SEFHe\0\0\0" + bytes(range(200)), FILM):
        assert decode(bare + behind)[0].tobytes() == pixels
    for missing in (1, 2, 3, 5, 8, 20, 50, 300, len(bare) // 2):
        for behind in (b"", bytes(500)):
            with suppress(UnusableImage):  # of bytes that are missing and change no pixel, it may be taken
                assert decode(bare[:-missing] + behind)[0].tobytes() == pixels
    with pytest.raises(UnusableImage, match=f"^{CUT}$"):
        decode(bare[: len(bare) // 2])


def test_a_progressive_jpeg_without_its_last_scans_is_called_cut():
    data = encode(PICTURE, "JPEG", progressive=True)
    for scan in range(2, 10):
        with pytest.raises(UnusableImage, match=CUT):
            decode(data[: [found.start() for found in re.finditer(rb"\xff\xda", data)][scan]])


def test_a_jpeg_without_an_end_is_compared_no_more_often_than_its_size_allows(monkeypatch):
    parsed = []
    monkeypatch.setattr("PIL.JpegImagePlugin.JpegImageFile.load_end", lambda self: parsed.append(self.size))
    decode(STAR)
    assert len(parsed) == 1
    decode(STAR[:-2])
    assert len(parsed) == 1 + 1 + 8
    monkeypatch.setattr("app.images.decode._PIXELS_COMPARED", 1)
    decode(STAR[:-2])
    assert len(parsed) == 10 + 1 + 2


@pytest.mark.parametrize("format", sorted({*SAMPLES} - {"JPEG"}))
def test_a_cut_file_is_called_cut_and_a_broken_one_is_not(format):
    whole = SAMPLES[format]
    for size in range(40, len(whole) * 3 // 4, 97):
        with pytest.raises(UnusableImage, match=f"^{CUT}$"):
            decode(whole[:size])


@pytest.mark.parametrize("compression", ["tiff_lzw", "tiff_deflate", "jpeg", "packbits"])
def test_a_cut_tiff_is_called_cut_whatever_its_compression(compression):
    whole = encode(PICTURE, "TIFF", compression=compression)
    for size in range(40, len(whole) * 9 // 10, len(whole) // 20):
        with pytest.raises(UnusableImage, match=CUT):
            decode(whole[:size])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (patched(jpeg(), frame_at(jpeg()), b"\x0c"), "^This kind of JPEG is not supported: 12 bits. Save it"),
        (patched(jpeg(), frame_at(jpeg()) + 1, b"\0\0"), "not supported: a height behind its data"),
        (patched(jpeg(), frame_at(jpeg()) - 3, b"\xc3"), "not supported: lossless"),
        (b"\xff\xd8\xff\xf7" + b"\0\x0b\x08\0\x10\0\x10\x01\x01\x11\0\xff\xd9", "not supported: JPEG-LS"),
        (b"\xff\xd8\xff broken", "^This looks like JPEG but cannot be decoded"),
        (b"\xff\xd8\xff\xe0" + b"\0\x04ab" + b"no marker" * 9, "^This looks like JPEG but cannot be decoded"),
        (jpeg()[:200], CUT),
        (SAMPLES["PNG"][:60] + b"x" * 20 + SAMPLES["PNG"][80:], "^This looks like PNG but cannot be decoded"),
    ],
)
def test_an_unsupported_a_broken_and_a_cut_image_are_told_apart(data, said):
    with pytest.raises(UnusableImage, match=said):
        decode(data)
