"""app/inference/cuda/driver.py where there is no driver, and against one that answers."""

import ctypes
import gc

import numpy as np
import pytest

from app.inference.cuda import driver as module
from app.inference.cuda.driver import DriverError, LockedBuffers, bytes_of, copy_from_gpu, count_gpus, lock_pages

LAYOUT = {"logits": ((2, 3), np.float32), "classes": ((2, 5), np.int64), "attention": ((2, 1, 7), np.float16)}


class FakeDriver:
    """Counts two GPUs, and remembers what it was asked."""

    def __init__(self, **statuses):
        self.calls = []
        self.statuses = statuses

    def __getattr__(self, name):
        def called(*arguments):
            self.calls.append((name, arguments))
            if name == "cuDeviceGetCount":
                arguments[0]._obj.value = 2
            return self.statuses.get(name, 0)

        return called


@pytest.fixture(autouse=True)
def nothing_loaded():
    module._driver.cache_clear()
    yield
    module._driver.cache_clear()


@pytest.fixture
def driver(monkeypatch):
    def install(**statuses):
        fake = FakeDriver(**statuses)
        loaded = iter([fake])
        monkeypatch.setattr(module.ctypes, "CDLL", lambda name: next(loaded))  # once, not for each call
        return fake

    return install


@pytest.mark.parametrize(("statuses", "count"), [({}, 2), ({"cuInit": 100}, 0), ({"cuDeviceGetCount": 100}, 0)])
def test_gpus_are_counted_and_a_driver_that_does_not_work_has_none(driver, statuses, count):
    driver(**statuses)
    assert count_gpus() == count


def test_without_a_driver_there_are_no_gpus(monkeypatch):
    monkeypatch.setattr(module, "LIBRARY", "libcuda-that-is-not-there.so.1")
    assert count_gpus() == 0
    with pytest.raises(DriverError, match="not-there"):
        lock_pages(np.zeros(8, np.uint8), gpu=0)


def test_a_buffer_is_locked_in_the_context_of_its_gpu_and_unlocked_with_its_end(driver):
    fake = driver()
    pixels = np.zeros(6, np.uint8)
    lock_pages(pixels, gpu=1)
    (_, retained, _, (start, size, _)) = (arguments for _, arguments in fake.calls)
    names = ["cuInit", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuMemHostRegister_v2"]
    assert [name for name, _ in fake.calls] == names
    assert retained[1] == 1
    assert (start.value, size.value) == (pixels.ctypes.data, 6)
    assert isinstance(size, ctypes.c_size_t)
    row, address = pixels[:3], pixels.ctypes.data
    del pixels
    gc.collect()
    assert fake.calls[-1][0] == "cuMemHostRegister_v2"  # a part of it is in use
    del row
    gc.collect()
    assert [(name, arguments[0].value) for name, arguments in fake.calls[4:]] == [
        ("cuCtxSetCurrent", None),
        ("cuMemHostUnregister", address),
    ]


def test_an_array_is_filled_from_an_address(driver):
    fake = driver()
    array = np.zeros(3, np.float32)
    copy_from_gpu(array, 2**40)
    ((name, (to, address, size)),) = fake.calls
    assert (name, to.value, address.value, size.value) == ("cuMemcpyDtoH_v2", array.ctypes.data, 2**40, 12)


def test_a_refusal_is_named(driver):
    driver(cuMemHostRegister_v2=304)
    with pytest.raises(DriverError, match=r"^cuMemHostRegister_v2: CUDA error 304$"):
        lock_pages(np.zeros(8, np.uint8), gpu=0)


def test_arrays_have_their_shapes_and_do_not_overlap_and_what_does_not_fit_is_not_lent(driver):
    driver()
    buffers = LockedBuffers(count=1, size_bytes=bytes_of(LAYOUT), gpu=1)
    assert buffers.borrow(LAYOUT | {"more": ((1,), np.float32)}) is None
    arrays = buffers.borrow(LAYOUT)
    for number, (name, (shape, dtype)) in enumerate(LAYOUT.items()):
        assert arrays[name].shape == shape
        assert arrays[name].dtype == dtype
        arrays[name][...] = number
    for number, array in enumerate(arrays.values()):
        assert (array == number).all()


def test_each_buffer_is_locked_and_is_not_lent_again_while_one_row_of_it_is_in_use(driver):
    calls = driver().calls
    borrow = LockedBuffers(count=2, size_bytes=bytes_of(LAYOUT), gpu=1).borrow
    locked = [arguments[1].value for name, arguments in calls if name == "cuMemHostRegister_v2"]
    assert locked == [3 * 64 + 64] * 2  # 24, 80 and 28 bytes, each from a multiple of 64 on
    assert [arguments[1] for name, arguments in calls if name == "cuDevicePrimaryCtxRetain"] == [1, 1]
    first, second = borrow(LAYOUT), borrow(LAYOUT)
    first["logits"][...], second["logits"][...] = 7, 2
    row = first["logits"][1]
    del first
    gc.collect()
    assert borrow(LAYOUT) is None
    assert row.tolist() == [7, 7, 7]
    del row
    gc.collect()
    assert borrow(LAYOUT) is not None
