"""app/inference/cuda_driver.py where there is no driver, and against one that answers."""

import ctypes
import gc

import numpy as np
import pytest

from app.inference import cuda_driver
from app.inference.cuda_driver import DriverError, LockedBuffers, bytes_of, copy_from_gpu, count_gpus, lock_pages

LAYOUT = {"logits": ((2, 3), np.float32), "classes": ((2, 5), np.int64), "attention": ((2, 1, 7), np.float16)}


class FakeDriver:
    """Counts two GPUs, and remembers what it was asked."""

    def __init__(self, **statuses):
        self.asked = []
        self.statuses = statuses

    def __getattr__(self, name):
        def called(*arguments):
            self.asked.append((name, arguments))
            if name == "cuDeviceGetCount":
                arguments[0]._obj.value = 2
            return self.statuses.get(name, 0)

        return called


@pytest.fixture(autouse=True)
def nothing_loaded():
    cuda_driver._driver.cache_clear()
    yield
    cuda_driver._driver.cache_clear()


@pytest.fixture
def driver(monkeypatch):
    def install(**statuses):
        fake = FakeDriver(**statuses)
        loaded = iter([fake])
        monkeypatch.setattr(cuda_driver.ctypes, "CDLL", lambda name: next(loaded))  # once, not for each call
        return fake

    return install


def test_gpus_are_counted(driver):
    driver()
    assert count_gpus() == 2


@pytest.mark.parametrize("function", ["cuInit", "cuDeviceGetCount"])
def test_a_driver_that_does_not_work_has_no_gpus(driver, function):
    driver(**{function: 100})
    assert count_gpus() == 0


def test_without_a_driver_there_are_no_gpus(monkeypatch):
    monkeypatch.setattr(cuda_driver, "LIBRARY", "libcuda-that-is-not-there.so.1")
    assert count_gpus() == 0
    with pytest.raises(DriverError, match="not-there"):
        lock_pages(np.zeros(8, np.uint8), gpu=0)


def test_the_whole_buffer_is_locked_in_the_context_of_its_gpu(driver):
    fake = driver()
    pixels = np.zeros((2, 3), np.uint8)
    lock_pages(pixels, gpu=1)
    assert [name for name, _ in fake.asked] == [
        "cuInit",
        "cuDevicePrimaryCtxRetain",
        "cuCtxSetCurrent",
        "cuMemHostRegister_v2",
    ]
    assert fake.asked[1][1][1] == 1
    address, size, _ = fake.asked[3][1]
    assert (address.value, size.value) == (pixels.ctypes.data, 6)
    assert isinstance(size, ctypes.c_size_t)


def test_pages_are_unlocked_with_the_end_of_their_buffer(driver):
    fake = driver()
    pixels = np.zeros(6, np.uint8)
    lock_pages(pixels, gpu=1)
    row, address = pixels[:3], pixels.ctypes.data
    del pixels
    gc.collect()
    assert fake.asked[-1][0] == "cuMemHostRegister_v2"  # a part of it is in use
    del row
    gc.collect()
    assert [(name, arguments[0].value) for name, arguments in fake.asked[4:]] == [
        ("cuCtxSetCurrent", None),
        ("cuMemHostUnregister", address),
    ]


def test_an_array_is_filled_from_an_address(driver):
    fake = driver()
    array = np.zeros(3, np.float32)
    copy_from_gpu(array, 2**40)
    ((name, (to, address, size)),) = fake.asked
    assert (name, to.value, address.value, size.value) == ("cuMemcpyDtoH_v2", array.ctypes.data, 2**40, 12)


def test_a_refusal_is_named(driver):
    driver(cuMemHostRegister_v2=304)
    with pytest.raises(DriverError, match=r"^cuMemHostRegister_v2: CUDA error 304$"):
        lock_pages(np.zeros(8, np.uint8), gpu=0)


@pytest.fixture
def locked(monkeypatch):
    found = []
    monkeypatch.setattr(cuda_driver, "lock_pages", lambda pixels, gpu: found.append((pixels.nbytes, gpu)))
    return found


def buffers(count: int = 2) -> LockedBuffers:
    return LockedBuffers(count=count, size_bytes=bytes_of(LAYOUT), gpu=1)


def test_every_buffer_is_locked_for_its_gpu(locked):
    buffers(3)
    assert locked == [(3 * 64 + 64, 1)] * 3  # 24, 80 and 28 bytes, each from a multiple of 64 on


@pytest.mark.usefixtures("locked")
def test_arrays_have_their_shapes_and_do_not_overlap():
    arrays = buffers().borrow(LAYOUT)
    for number, (name, (shape, dtype)) in enumerate(LAYOUT.items()):
        assert arrays[name].shape == shape
        assert arrays[name].dtype == dtype
        arrays[name][...] = number
    assert [array.ravel()[0] for array in arrays.values()] == [0, 1, 2]
    assert all((array == array.ravel()[0]).all() for array in arrays.values())


@pytest.mark.usefixtures("locked")
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


@pytest.mark.usefixtures("locked")
def test_two_borrowers_have_different_buffers():
    lender = buffers(2)
    first, second = lender.borrow(LAYOUT), lender.borrow(LAYOUT)
    first["logits"][...], second["logits"][...] = 1, 2
    assert (first["logits"] == 1).all()
    assert lender.borrow(LAYOUT) is None


@pytest.mark.usefixtures("locked")
def test_what_does_not_fit_is_not_lent():
    assert buffers().borrow(LAYOUT | {"more": ((1,), np.float32)}) is None
    assert LockedBuffers(count=0, size_bytes=100, gpu=0).borrow({}) is None
