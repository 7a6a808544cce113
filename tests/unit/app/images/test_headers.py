"""app/images/headers.py: sizes before decoding are those that Pillow finds, and no bytes make the reader fail."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import UnsupportedType, UnusableImage
from app.images.decode import Limits, opened
from app.images.headers import UNKNOWN, size_in_header
from app.images.upload import Upload
from tests.catalogue.every import CASES

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
