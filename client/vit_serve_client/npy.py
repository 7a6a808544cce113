"""NumPy's format for a vector, which takes less code than NumPy takes to install."""

import struct
from collections.abc import Sequence


def npy(vector: Sequence[float]) -> bytes:
    """A .npy file, version 1.0, of float32."""
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(vector)},), }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack(f"<H118s{len(vector)}f", len(head), head.encode(), *vector)
