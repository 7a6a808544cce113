"""app/images/headers.py: what people send in place of an image is named, and sizes before decoding are those that
Pillow finds. No bytes make it fail.
"""

import base64
import gzip
import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from app.errors import UnsupportedType, UnusableImage
from app.images.decode import Limits, opened
from app.images.headers import IMAGES, LOOK_BYTES, UNKNOWN, size_in_header, what_is
from app.images.upload import Upload
from tests.catalogue.case import encode
from tests.catalogue.every import CASES
from tests.catalogue.jpegs import jpeg, zipped

LIMITS = Limits(max_pixels=10**12, max_aspect_ratio=10**6)
BEGINNINGS = (
    b"\xff\xd8\xff\xe0",
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    *(b"RIFF\0\0\0\0WEBP" + kind for kind in (b"VP8 ", b"VP8L", b"VP8X")),
    b"GIF89a\0\0\0\0\x80!",
    b"BM\0\0\0\0\0\0\0\0",
    b"II*\0\x08\0\0\0",
    b"MM\0*\0\0\0\x08",
    b"\0\0\0\x10ftypavif\0\0\0\0\0\0\0\0meta\0\0\0\0\0\0\0\0iprp\0\0\0\0ipco",
    b"\0\0\0\x10ftypavis\0\0\0\0\0\0\0\0moov\0\0\0\0trak",
)


@pytest.mark.parametrize("name", CASES)
def test_every_size_in_the_catalogue_is_that_of_pillow(name):
    data = CASES[name].make()
    size, of_pillow = size_in_header(Upload([data]).read), None
    with suppress(UnsupportedType, UnusableImage), opened(data, LIMITS) as (image, kind):
        of_pillow = image.size
        if kind == "TIFF":  # which Pillow turns as its orientation asks
            size, of_pillow = max(size, size[::-1]), max(of_pillow, of_pillow[::-1])
    assert of_pillow in (size, None) or (size == UNKNOWN and CASES[name].statuses == {422})


@given(st.sampled_from(BEGINNINGS), st.binary(max_size=2000), st.integers(0, 300))
def test_any_bytes_have_a_size_without_a_read_outside(beginning, rest, cut):
    data = (beginning + rest)[cut if cut > 290 else 0 :]

    def read(at: int, size: int) -> bytes:
        assert at >= 0
        assert 0 <= size <= 2**16
        return data[at : at + size]

    assert min(size_in_header(read)) >= 0


def box(*brands: bytes) -> bytes:
    """The first box of a file of the family of MP4."""
    return (12 + 4 * len(brands)).to_bytes(4, "big") + b"ftyp" + brands[0] + bytes(4) + b"".join(brands[1:]) + bytes(64)


SVG = b'<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE svg ['
SENT = {
    "AVIF": [
        box(b"avif", b"mif1", b"miaf", b"MA1B"), box(b"avis", b"msf1", b"iso8"), box(b"mif1", b"heic", b"avif"),
        box(b"mif1", b"mif1", b"avif", b"miaf"),
    ],
    "HEIC": [
        box(b"heic", b"mif1", b"MiHB", b"MiHE", b"MiPr", b"miaf", b"heic", b"tmap"),  # an iPhone
        box(b"heix", b"mif1", b"heix"), box(b"mif1", b"mif1", b"heic"), box(b"msf1", b"hevc"),
    ],
    "a raw photograph": [box(b"crx ", b"crx ", b"isom"), b"FUJIFILMCCD-RAW 0201"],
    "a video": [
        box(b"isom", b"iso2", b"avc1", b"mp41"), box(b"qt  ", b"qt  "), b"\x1a\x45\xdf\xa3\x9fB\x86\x81\x01",
        b"RIFF\0\0\0\0AVI LIST",
    ],
    "an archive": [gzip.compress(jpeg()), zipped("a.jpg", jpeg()), b"a.jpg".ljust(257, b"\0") + b"ustar\x0000"],
    "PDF": [b"%PDF-1.7\n"],
    "SVG": [b"<svg xmlns='http://www.w3.org/2000/svg'/>", SVG],
    "HTML": [b"<!doctype html><p>", b"\n<html><svg>"],
    "a form": [b'------X\r\nContent-Disposition: form-data; name="a"\r\n', b"image=@photo.jpg"],
    "JSON": [
        b'{"image": "eA=="}', b"[1, 2]", b'[{"a": 1}]', b"{}",
        json.dumps(base64.b64encode(jpeg()).decode()).encode(),
    ],
    "a data URL": [b"data:image/png;base64,iVBORw0KGgo"],
    "base64": [
        *(base64.b64encode(encode(Image.new("L", (9, 9)), format)) for format in ("PNG", "JPEG")),
        base64.encodebytes(bytes(range(256)) * 9),
    ],
    "text": [b"a note", "schön".encode()[:4], b"https://example.org/a.jpg"],
}  # fmt: skip


@pytest.mark.parametrize(("name", "data"), [(name, data) for name, those in SENT.items() for data in those])
def test_what_people_send_is_named(name, data):
    assert what_is(data) == name


@given(st.sampled_from(sorted(IMAGES)), st.binary(max_size=2 * LOOK_BYTES), st.binary(max_size=2 * LOOK_BYTES))
def test_no_bytes_make_it_fail_and_images_are_known_by_their_beginning(name, before, behind):
    what_is(before)
    start = {"WebP": b"RIFF\0\0\0\0WEBP", "BMP": b"BM" + bytes(8), "AVIF": box(b"avif"), "JPEG": b"\xff\xd8\xff"}
    start |= {"PNG": b"\x89PNG\r\n\x1a\n", "GIF": b"GIF89a", "TIFF": b"II*\0"}
    assert what_is(start[name] + behind) == name
