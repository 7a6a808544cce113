"""app/inference/engine.py on texts as ONNX Runtime and CUDA write them."""

import pytest

from app.inference.engine import fault_of

NODE = "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Non-zero status code returned while running MatMul node. "
ARENA = (
    "/onnxruntime_src/onnxruntime/core/framework/bfc_arena.cc:376 void* onnxruntime::BFCArena::AllocateRawInternal() "
)


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (MemoryError(), "memory"),
        (f"{NODE}{ARENA}Failed to allocate memory for requested buffer of size 2830172160", "memory"),
        (f"{NODE}{ARENA}Available memory of 0 is smaller than requested bytes of 512", "memory"),
        (f"{NODE}CUDA failure 2: out of memory ; GPU=0 ; hostname=a ; expr=cudaMalloc((void**)&p, size);", "memory"),
        (f"{NODE}std::bad_alloc", "memory"),
        ("Exception: mmap: Cannot allocate memory", "memory"),
        (f"{NODE}CUDA failure 700: an illegal memory access was encountered ; GPU=0 ; hostname=a ; file=b", "fatal"),
        ("CUDA error executing cudaMemcpy: cudaErrorIllegalAddress", "fatal"),
        ("NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.", "fatal"),
        ("CUDA failure 7000: what nobody has seen", "other"),
        ("CUDA failure 1: invalid argument ; GPU=0", "other"),
        (f"{NODE}Attempting to broadcast an axis by a dimension other than 1. 3 by 700", "other"),
    ],
)
def test_the_text_tells(error, fault):
    assert fault_of(error if isinstance(error, Exception) else RuntimeError(error)) == fault
