"""app/images/preparer.py: what becomes of an upload, and that no strange answer of a worker gets through."""

import gc
import struct
import sys
from dataclasses import replace
from io import BytesIO
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from app.errors import UnsupportedType, UnusableImage
from app.images.messages import GarbledAnswer, pack_answer, unpack_answer
from app.images.preparer import IMAGE, IMAGE_AND_THUMBNAIL, JSON
from app.images.preprocess import PreprocessedImage
from tests.support.specs import preparer_of, spec_of

preparer = preparer_of(spec_of((8, 8)))


def ask(data: bytes, *, pixels: int = 10**6, thumbnail: bool = True) -> PreprocessedImage:
    asked = IMAGE_AND_THUMBNAIL if thumbnail else IMAGE
    return unpack_answer(bytearray(preparer(asked, data, pixels)), shape=(8, 8))


def test_the_answer_is_what_was_prepared(encode):
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8))
    here, there = vars(preparer.prepare(encode(noise), thumbnail=True)), vars(ask(encode(noise)))
    assert (there.pop("pixels") == here.pop("pixels")).all()
    assert there == here


def test_an_image_that_has_more_pixels_than_it_claims_is_not_decoded(encode, monkeypatch):
    image = encode(Image.new("RGB", (50, 20)))
    assert ask(image, pixels=1000).size == (50, 20)
    monkeypatch.setattr("app.images.preparer.upright_rgb", lambda image: pytest.fail("decoded"))
    with pytest.raises(UnusableImage, match="larger than its header says"):
        ask(image, pixels=999)


@pytest.mark.parametrize(
    ("data", "kind"), [(b"", UnusableImage), (b"hello", UnsupportedType), (b"\xff\xd8\xff", UnusableImage)]
)
def test_refusals_come_back_as_they_were(data, kind):
    with pytest.raises(kind) as there:
        ask(data)
    with pytest.raises(kind) as here:
        preparer.prepare(data, thumbnail=True)
    assert there.value.detail == here.value.detail


def test_nothing_of_what_is_refused_stays_in_memory(encode):
    """Not until the next garbage collection, which may come after dozens of uploads of 32 MiB."""
    large, broken = encode(Image.new("RGB", (50, 20))), b"\x89PNG\r\n\x1a\n" + bytes(1000)
    images = (large, broken, b"\xff\xd8\xff" + bytes(1000), b"GIF89a" + bytes(1000), b"hello")
    texts = (b'{"a": "' + bytes(1000), b"[" * 9000, b"\xff" * 1000, b'["' + b"." * 1000 + b'"]')
    gc.collect()
    gc.disable()
    try:
        for asked, data in (*((IMAGE_AND_THUMBNAIL, image) for image in images), *((JSON, text) for text in texts)):
            before = sys.getrefcount(data)
            preparer(asked, data, 999)
            assert sys.getrefcount(data) == before
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "facts",
    [
        '{"error": "overloaded", "detail": "a"}',
        '{"error": ["unusable-image"], "detail": "a"}',
        '{"error": "unusable-image"}',
        '{"size": [Infinity, 1], "box": [0, 0, 1, 1], "format": "PNG"}',
        "[" * 100_000,
        "7",
    ],
)
def test_no_other_error_is_raised_for_a_worker(facts):
    """A worker that hostile bytes have taken over can send anything."""
    with pytest.raises(GarbledAnswer):
        unpack_answer(bytearray(struct.pack("!I", len(facts)) + facts.encode() + bytes(8 * 8 * 3)), shape=(8, 8))


def test_a_thumbnail_that_is_no_jpeg_is_taken_from_no_worker(encode):
    image = Image.new("RGB", (50, 20))
    prepared = preparer.prepare(encode(image), thumbnail=False)
    with pytest.raises(GarbledAnswer):
        unpack_answer(b"".join(pack_answer(replace(prepared, thumbnail=encode(image, "TIFF")))), shape=(8, 8))


def test_too_little_memory_is_a_refusal(encode, monkeypatch):
    monkeypatch.setattr("app.images.preparer.preprocess", Mock(side_effect=MemoryError))
    with pytest.raises(UnusableImage, match="memory"):
        ask(encode(Image.new("RGB", (50, 20))))


@pytest.mark.parametrize(
    ("size", "expected"), [((40, 20), (14, 7)), ((32, 20), (16, 10)), ((12, 10), (12, 10)), ((3, 160), (1, 16))]
)
def test_the_thumbnail_keeps_the_shape_and_is_never_larger(encode, size, expected):
    assert Image.open(BytesIO(ask(encode(Image.new("RGB", size, "teal"))).thumbnail)).size == expected


def test_the_thumbnail_shows_the_image_where_maps_are_wanted(encode):
    left = Image.new("RGB", (64, 64), "white")
    left.paste("black", (0, 0, 32, 64))
    shown = np.asarray(Image.open(BytesIO(ask(encode(left)).thumbnail)))
    assert shown[:, :6].max() < 30
    assert shown[:, 10:].min() > 225
    assert ask(encode(left), thumbnail=False).thumbnail == b""


def test_the_thumbnail_carries_nothing_else_of_the_upload(encode):
    noted = encode(Image.new("RGB", (40, 20)), "JPEG", comment=b"secret", icc_profile=b"secret", dpi=(99, 99))
    for data in (noted, encode(Image.new("P", (40, 20)), "GIF", comment=b"secret" * 20_000)):
        shown = Image.open(BytesIO(ask(data).thumbnail))
        assert set(shown.info) <= {"jfif", "jfif_version", "jfif_unit", "jfif_density"}


@given(st.binary(max_size=300), st.booleans())
def test_any_answer_is_read_or_refused(encode, junk, cut):
    whole = preparer(IMAGE, encode(Image.new("RGB", (20, 10))), 200)
    try:
        done = unpack_answer(bytearray(whole[: len(junk)] + junk if cut else junk), shape=(8, 8))
    except (GarbledAnswer, UnsupportedType, UnusableImage):
        return
    assert done.pixels.shape == (8, 8, 3)
