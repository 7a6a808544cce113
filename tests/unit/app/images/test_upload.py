import hashlib
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.images.upload import LARGEST_BLOCK_BYTES, START_BYTES, Upload
from tests.benchmarks.peak import peak_mib
from tests.load.server import reset_peak

MIB = 2**20
EDGES = [n + d for n in (START_BYTES, 2 * START_BYTES, 4 * START_BYTES, 3 * LARGEST_BLOCK_BYTES) for d in (-1, 0, 1)]


def pattern(size: int) -> bytes:
    return bytes(range(251)) * (size // 251) + bytes(range(size % 251))


def whole(upload: Upload) -> bytes:
    return b"".join(upload.parts())


@given(st.lists(st.integers(0, 300_000), max_size=8))
def test_pieces_of_any_size_are_kept_in_order(sizes):
    upload, data = Upload(), pattern(sum(sizes))
    start = 0
    for size in sizes:
        upload.add(memoryview(data)[start : start + size])
        start += size
    assert whole(upload) == data
    assert len(upload) == len(data)
    assert upload.sha256() == hashlib.sha256(data).digest()


@pytest.mark.parametrize("size", [0, 1, *EDGES])
def test_at_every_edge_between_blocks(size):
    data = pattern(size)
    assert whole(Upload(data)) == data
    by_two = Upload(data[: size // 2])
    by_two.add(data[size // 2 :])
    assert whole(by_two) == data


def added_mib(pieces: int, piece: bytes, uploads: int = 1) -> tuple[float, float]:
    """The most that uploads of so many pieces each take, and what is left when they are gone."""
    process = os.getpid()

    def now() -> float:
        reset_peak(process)
        return peak_mib(process)

    before = now()
    kept = [Upload() for _ in range(uploads)]
    for _ in range(pieces):
        for upload in kept:
            upload.add(piece)
    peak = peak_mib(process) - before
    del kept, upload
    return peak, now() - before


@pytest.mark.parametrize("piece", [65_537, 300_000])
def test_an_upload_takes_its_bytes_once_and_gives_them_back(piece):
    added_mib(32 * MIB // piece, bytes(piece))  # the heap's own habits change with what is freed
    peak, left = added_mib(32 * MIB // piece, bytes(piece))
    assert 30 < peak < 1.2 * 32
    assert left < 2


def test_bytes_that_have_not_come_take_no_memory():
    peak, _ = added_mib(1, bytes(START_BYTES + 1), uploads=100)
    assert peak < 1.2 * 100 * START_BYTES / MIB
