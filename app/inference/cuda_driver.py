"""What NVIDIA's driver is asked directly, because ONNX Runtime has no call for it."""

import ctypes
import weakref
from contextlib import suppress
from functools import cache
from typing import Any

import numpy.typing as npt

from app.inference.contract import Pixels

LIBRARY = "libcuda.so.1"


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
