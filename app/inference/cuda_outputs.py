"""Page-locked memory for what comes from the GPU: the GPU writes there itself, and without a detour.

To lock pages takes long, so a few buffers are locked at the start and then lent. Each comes back when no array refers
to any part of it any more, however long somebody keeps the outputs of one image.
"""

import ctypes
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

from app.inference.cuda_driver import lock_pages

ALIGNMENT = 64  # bytes, of each array in a buffer
Layout = dict[str, tuple[tuple[int, ...], type]]  # shape and type, by name


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
