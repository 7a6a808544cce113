"""NVIDIA's driver, for what ONNX Runtime has no call for: counting GPUs, and memory that they use directly.

Locking pages takes long. So a few buffers for outputs are locked at the start and then lent. Each comes back when no
array refers to any part of it any more, however long somebody keeps the outputs of one image.
"""

import ctypes
import weakref
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from app.inference.engine import Pixels

LIBRARY = "libcuda.so.1"
ALIGNMENT = 64  # bytes, of each array in a buffer
Layout = dict[str, tuple[tuple[int, ...], type]]  # shape and type, by name


class DriverError(Exception):
    """The driver is missing, or has refused a call."""


def count_gpus() -> int:
    """GPUs that this process may use (`CUDA_VISIBLE_DEVICES` hides others); 0 without a driver that works."""
    count = ctypes.c_int(0)
    try:
        _call("cuInit", 0)
        _call("cuDeviceGetCount", ctypes.byref(count))
    except DriverError:
        return 0
    return count.value


def lock_pages(pixels: Pixels, *, gpu: int) -> None:
    """Keep the buffer in memory where it is, as long as the array is there, so that the GPU reads it directly;
    otherwise each copy takes a detour.

    Raises DriverError.
    """
    address = ctypes.c_void_p(pixels.ctypes.data)
    context = ctypes.c_void_p()
    _call("cuInit", 0)
    _call("cuDevicePrimaryCtxRetain", ctypes.byref(context), gpu)  # the one that ONNX Runtime uses
    _call("cuCtxSetCurrent", context)  # of this thread, which may not have called ONNX Runtime yet
    _call("cuMemHostRegister_v2", address, ctypes.c_size_t(pixels.nbytes), 0)
    weakref.finalize(pixels, _unlock_pages, address, context).atexit = False  # the driver ends with the process


def copy_from_gpu(to: npt.NDArray[Any], address: int) -> None:
    """Fill an array from an address on the GPU, and wait for it. In the thread that has locked pages for that GPU.

    Raises DriverError.
    """
    _call("cuMemcpyDtoH_v2", ctypes.c_void_p(to.ctypes.data), ctypes.c_uint64(address), ctypes.c_size_t(to.nbytes))


class LockedBuffers:
    """Any thread may drop the last array of a buffer; one thread borrows."""

    def __init__(self, *, count: int, size_bytes: int, gpu: int) -> None:
        """Raises DriverError."""
        self._kind: Any = type("Lent", (ctypes.c_char * size_bytes,), {})  # a subclass takes weakrefs
        self._size_bytes = size_bytes
        self._free = [np.zeros(size_bytes, np.uint8) for _ in range(count)]
        for buffer in self._free:
            lock_pages(buffer, gpu=gpu)

    def borrow(self, layout: Layout) -> dict[str, npt.NDArray[Any]] | None:
        """Arrays that lie in one buffer; None if all buffers are lent, or too small."""
        if not self._free or bytes_of(layout) > self._size_bytes:
            return None
        buffer = self._free.pop()
        lent = self._kind.from_buffer(buffer)
        weakref.finalize(lent, self._free.append, buffer)
        arrays: dict[str, npt.NDArray[Any]] = {}
        start = 0
        for name, (shape, dtype) in layout.items():
            array: npt.NDArray[Any] = np.frombuffer(lent, dtype, count=int(np.prod(shape)), offset=start)
            arrays[name] = array.reshape(shape)
            start += _padded(array.nbytes)
        return arrays


def bytes_of(layout: Layout) -> int:
    return sum(_padded(int(np.prod(shape)) * np.dtype(dtype).itemsize) for shape, dtype in layout.values())


def _padded(size_bytes: int) -> int:
    return size_bytes + -size_bytes % ALIGNMENT


def _unlock_pages(address: ctypes.c_void_p, context: ctypes.c_void_p) -> None:
    with suppress(DriverError):  # of a context that is broken, with which they are lost anyway
        _call("cuCtxSetCurrent", context)  # any thread may drop the last array
        _call("cuMemHostUnregister", address)


@cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL(LIBRARY)


def _call(name: str, *arguments: object) -> None:
    try:
        function = getattr(_driver(), name)
    except (OSError, AttributeError) as error:
        raise DriverError(str(error)) from error
    if status := function(*arguments):
        raise DriverError(f"{name}: CUDA error {status}")
