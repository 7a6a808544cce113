"""What can be wrong with an engine: it cannot be had, or an exception of a forward pass says more than that it failed.

ONNX Runtime has one exception for nearly everything: the text has to tell (microsoft/onnxruntime#16307).
"""

import re
from typing import Literal

from app.errors import CannotStart

Fault = Literal["memory", "fatal", "other"]

MEMORY = re.compile(
    r"failed to allocate memory|out of memory|bad[ _]alloc(ation)?\b|smaller than requested bytes"
    r"|cudaErrorMemoryAllocation|CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED",
    re.IGNORECASE,
)
# CUDA errors after which every call of the process fails, or answers nonsense, until it ends ("sticky"), by number and
# by name: https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html. A lost device is as final.
STICKY = {
    3: "InitializationError",
    4: "CudartUnloading",
    46: "DevicesUnavailable",
    100: "NoDevice",
    201: "DeviceUninitialized",
    214: "ECCUncorrectable",
    220: "NvlinkUncorrectable",
    700: "IllegalAddress",
    702: "LaunchTimeout",
    709: "ContextIsDestroyed",
    710: "Assert",
    714: "HardwareStackError",
    715: "IllegalInstruction",
    716: "MisalignedAddress",
    717: "InvalidAddressSpace",
    718: "InvalidPc",
    719: "LaunchFailure",
    999: "Unknown",
}
FATAL = re.compile(
    rf"CUDA (failure|error):? \(?({'|'.join(map(str, STICKY))})\b"
    rf"|cudaError({'|'.join(STICKY.values())})\b"
    r"|illegal memory access|unspecified launch failure|device-side assert|uncorrectable ECC|fallen off the bus|\bXid\b"
    r"|(CUBLAS|CUDNN)_STATUS_EXECUTION_FAILED",
    re.IGNORECASE,
)


class DeviceError(CannotStart):
    """The device that was asked for is not in use."""


def fault_of(error: BaseException) -> Fault:
    """Memory: the batch was too large for what is free. Fatal: only a new process helps. Other: an image, perhaps."""
    if FATAL.search(str(error)):
        return "fatal"
    if isinstance(error, MemoryError) or MEMORY.search(str(error)):
        return "memory"
    return "other"
