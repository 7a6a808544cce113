import hashlib
import os

import pytest

from app.images.upload import LARGEST_BLOCK_BYTES, START_BYTES, Upload
from tests.support.peak import peak_mib, reset_peak

MIB = 2**20
EDGES = [n + d for n in (START_BYTES, 2 * START_BYTES, 4 * START_BYTES, 3 * LARGEST_BLOCK_BYTES) for d in (-1, 0, 1)]


def pattern(size: int) -> bytes:
    return bytes(range(251)) * (size // 251) + bytes(range(size % 251))


def whole(upload: Upload) -> bytes:
    return b"".join(upload.parts())


@pytest.mark.parametrize("size", [0, 1, *EDGES])
def test_pieces_are_kept_in_order_at_every_edge_between_blocks(size):
    data = pattern(size)
    by_three = Upload(data[: size // 2])
    for piece in (memoryview(data)[size // 2 : -1], b"", data[-1:]):
        by_three.add(piece)
    for upload in (Upload(data), by_three):
        assert (whole(upload), len(upload), upload.sha256()) == (data, size, hashlib.sha256(data).digest())


def test_any_bytes_are_read_across_blocks():
    data = pattern(4 * START_BYTES)
    upload = Upload(data)
    for at in (0, 1, *EDGES[:6], len(data) - 1, len(data), len(data) + 9):
        for size in (0, 1, 64, 2 * START_BYTES, 2**30):
            assert upload.read(at, size) == data[at : at + size]


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
