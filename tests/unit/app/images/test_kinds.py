"""app/images/kinds.py: what people send by mistake is named, with what to send."""

import base64
import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from app.images.kinds import ACCEPTED, IMAGES, LOOK_BYTES, what_is
from tests.catalogue.case import encode
from tests.catalogue.jpegs import jpeg, zipped

SEND = f". Send {ACCEPTED}."


def box(*brands: bytes) -> bytes:
    """The first box of a file of the family of MP4."""
    return (12 + 4 * len(brands)).to_bytes(4, "big") + b"ftyp" + brands[0] + bytes(4) + b"".join(brands[1:]) + bytes(64)


SVG = b'<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE svg ['
HEIC = f"{SEND} An iPhone takes JPEG if Settings, Camera, Formats says Most Compatible."
FOREIGN = [
    (box(b"heic", b"mif1", b"MiHB", b"MiHE", b"MiPr", b"miaf", b"heic", b"tmap"), "HEIC", HEIC),  # an iPhone
    (box(b"heix", b"mif1", b"heix"), "HEIC", HEIC),
    (box(b"mif1", b"mif1", b"heic"), "HEIC", HEIC),
    (box(b"msf1", b"hevc"), "HEIC", HEIC),
    (b"\xff\x0a" + bytes(50), "JPEG XL", SEND),
    (b"\0\0\0\x0cJXL \r\n\x87\n", "JPEG XL", SEND),
    (encode(Image.new("L", (9, 9)), "JPEG2000"), "JPEG 2000", SEND),
    (b"\xff\x4f\xff\x51\0", "JPEG 2000", SEND),
    (box(b"crx ", b"crx ", b"isom"), "a raw file of a camera", SEND),
    (box(b"isom", b"iso2", b"avc1", b"mp41"), "a video", SEND),
    (box(b"qt  ", b"qt  "), "a video", SEND),
    (b"\x1a\x45\xdf\xa3\x9fB\x86\x81\x01", "a video", SEND),
    (b"RIFF\0\0\0\0AVI LIST", "a video", SEND),
    (b"RIFF\0\0\0\0WAVEfmt ", "audio", SEND),
    (b"%PDF-1.7\n", "PDF", SEND),
    (b"%!PS-Adobe-3.0 EPSF-3.0\n", "PostScript", SEND),
    (b"8BPS\0\1", "a Photoshop file", SEND),
    (encode(Image.new("L", (9, 9)), "ICO"), "an icon", SEND),
    (encode(Image.new("L", (9, 9)), "PPM"), "a Netpbm image", SEND),
    (bytes(128) + b"DICM", "DICOM", SEND),
    (b"\x93NUMPY\1\0", "a NumPy array", SEND),
    (gzip.compress(jpeg()), "gzip", f": unpack it first{SEND}"),
    (zipped("a.jpg", jpeg()), "a ZIP archive", f": unpack it first{SEND}"),
    (b"a.jpg".ljust(257, b"\0") + b"ustar\x0000", "an archive", f": unpack it first{SEND}"),
    (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "SVG", SEND),
    (b"\xef\xbb\xbf" + SVG, "SVG", SEND),
    (b"<!doctype html><p>", "HTML", f", perhaps a page that was saved in place of an image{SEND}"),
    (b"\n<html><svg>", "HTML", f", perhaps a page that was saved in place of an image{SEND}"),
    (b"<?xml version='1.0'?><Error><Code>NoSuchKey</Code></Error>", "XML", SEND),
    (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
        "a pointer of Git LFS",
        ", which stands for a file: git lfs pull gets the file itself.",
    ),
    (b"a note", "not an image of an accepted type, but text", SEND),
    ("schön".encode()[:4], "not an image of an accepted type, but text", SEND),
    ('{"a": 1}'.encode("utf-16"), "text in UTF-16", ": send UTF-8, or an image."),
]
JSON = ": send Content-Type: application/json."
STANDS_FOR = ": send the bytes that it stands for, or JSON with it under inputs."
PRINTED = "what Python prints of bytes, b'...'"
FORM = ": do not set Content-Type yourself, because the form's own names its boundary."
CALLED = [
    *(
        (text, "JSON", JSON)
        for text in (b'{"image": "eA=="}', b'\xef\xbb\xbf {\n "a": 1', b"[1, 2]", b'[{"a": 1}]', b"{}")
    ),
    (json.dumps(base64.b64encode(jpeg()).decode()).encode(), "JSON", JSON),
    *(
        (base64.b64encode(encode(Image.new("L", (9, 9)), f)), "base64", STANDS_FOR)
        for f in ("PNG", "JPEG", "GIF", "WEBP")
    ),
    (base64.encodebytes(bytes(range(256)) * 9), "base64", STANDS_FOR),
    (base64.urlsafe_b64encode(b"\xff\xd8\xff" + bytes(3)), "base64", STANDS_FOR),
    *((str(image).encode(), PRINTED, ": send the bytes themselves.") for image in (jpeg(), base64.b64encode(jpeg()))),
    (b"data:image/png;base64,iVBORw0KGgo", "a data URL", STANDS_FOR),
    (b'------X\r\nContent-Disposition: form-data; name="a"\r\n', "a form", FORM),
    (
        b"image=@photo.jpg",
        "a form without files",
        ": send the image itself as the body, or files in multipart/form-data. With curl: -F image=@photo.jpg.",
    ),
    (b"https://example.org/a.jpg", "an address", ", which the service does not fetch: send the image itself."),
]


@pytest.mark.parametrize(("data", "kind", "advice"), FOREIGN + CALLED)
def test_what_people_send_by_mistake_is_named_with_what_to_send(data, kind, advice):
    found = what_is(data)
    assert found is not None
    assert found.sentence == f"This is {kind}{advice}"


@given(st.sampled_from(sorted(IMAGES)), st.binary(max_size=2 * LOOK_BYTES), st.binary(max_size=2 * LOOK_BYTES))
def test_no_bytes_make_it_fail_and_images_are_known_by_their_beginning(name, before, behind):
    what_is(before)
    start = {"WebP": b"RIFF\0\0\0\0WEBP", "BMP": b"BM" + bytes(8), "AVIF": box(b"avif"), "JPEG": b"\xff\xd8\xff"}
    start |= {"PNG": b"\x89PNG\r\n\x1a\n", "GIF": b"GIF89a", "TIFF": b"II*\0"}
    assert what_is(start[name] + behind).name == name
