"""app/inference/cuda_outputs.py: buffers are lent to one borrower at a time."""

import gc

import numpy as np
import pytest

from app.inference import cuda_outputs
from app.inference.cuda_outputs import LockedBuffers, bytes_of

LAYOUT = {"logits": ((2, 3), np.float32), "classes": ((2, 5), np.int64), "attention": ((2, 1, 7), np.float16)}


@pytest.fixture(autouse=True)
def locked(monkeypatch):
    found = []
    monkeypatch.setattr(cuda_outputs, "lock_pages", lambda pixels, gpu: found.append((pixels.nbytes, gpu)))
    return found


def buffers(count: int = 2) -> LockedBuffers:
    return LockedBuffers(count=count, size_bytes=bytes_of(LAYOUT), gpu=1)


def test_every_buffer_is_locked_for_its_gpu(locked):
    buffers(3)
    assert locked == [(3 * 64 + 64, 1)] * 3  # 24, 80 and 28 bytes, each from a multiple of 64 on


def test_arrays_have_their_shapes_and_do_not_overlap():
    arrays = buffers().borrow(LAYOUT)
    for number, (name, (shape, dtype)) in enumerate(LAYOUT.items()):
        assert arrays[name].shape == shape
        assert arrays[name].dtype == dtype
        arrays[name][...] = number
    assert [array.ravel()[0] for array in arrays.values()] == [0, 1, 2]
    assert all((array == array.ravel()[0]).all() for array in arrays.values())


def test_a_buffer_is_not_lent_again_while_one_row_of_it_is_in_use():
    lender = buffers(1)
    arrays = lender.borrow(LAYOUT)
    arrays["logits"][...] = 7
    row = arrays["logits"][1]
    del arrays
    gc.collect()
    assert lender.borrow(LAYOUT) is None
    assert row.tolist() == [7, 7, 7]
    del row
    gc.collect()
    assert lender.borrow(LAYOUT) is not None


def test_two_borrowers_have_different_buffers():
    lender = buffers(2)
    first, second = lender.borrow(LAYOUT), lender.borrow(LAYOUT)
    first["logits"][...], second["logits"][...] = 1, 2
    assert (first["logits"] == 1).all()
    assert lender.borrow(LAYOUT) is None


def test_what_does_not_fit_is_not_lent():
    assert buffers().borrow(LAYOUT | {"more": ((1,), np.float32)}) is None
    assert LockedBuffers(count=0, size_bytes=100, gpu=0).borrow({}) is None
