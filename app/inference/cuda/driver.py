"""NVIDIA's driver, for what ONNX Runtime has no call for: counting GPUs."""

import ctypes

LIBRARY = "libcuda.so.1"


def count_gpus() -> int:
    """GPUs that this process may use (`CUDA_VISIBLE_DEVICES` hides others); 0 without a driver that works."""
    count = ctypes.c_int(0)
    try:
        driver = ctypes.CDLL(LIBRARY)
        failed = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    except (OSError, AttributeError):
        return 0
    return 0 if failed else count.value
