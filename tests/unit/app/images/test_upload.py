"""app/images/upload.py: bytes in pieces of any size are read as one."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from app.images.upload import SMALL_BYTES, Upload

PIECES = st.lists(st.binary(max_size=9) | st.sampled_from([bytes(SMALL_BYTES - 1), b"x" * SMALL_BYTES]), max_size=9)


@given(PIECES, st.booleans(), st.integers(0, 4 * SMALL_BYTES), st.integers(0, 4 * SMALL_BYTES))
def test_pieces_are_kept_in_order_and_any_bytes_are_read(pieces, added, at, size):
    upload, data = Upload(() if added else pieces), b"".join(pieces)
    for piece in pieces if added else ():
        upload.add(piece)
    assert (b"".join(upload.pieces), len(upload), upload.sha256()) == (data, len(data), hashlib.sha256(data).digest())
    assert (upload.read(at, size), len(upload.part(at, size))) == (data[at : at + size], len(data[at : at + size]))


def test_small_pieces_are_joined():
    upload = Upload()
    for _ in range(100_000):
        upload.add(b"ab")
    assert len(upload.pieces) == 13
