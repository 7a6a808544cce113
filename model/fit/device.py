"""The device that runs the network: a GPU with CUDA if there is one, else the CPU."""

from contextlib import AbstractContextManager, nullcontext

import torch


def best_device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def mixed_precision(device: torch.device) -> AbstractContextManager[object]:
    """bfloat16 where CUDA has it, which needs no scaling of the loss; float32 elsewhere."""
    if device.type == "cuda" and torch.cuda.is_bf16_supported():
        return torch.autocast("cuda", dtype=torch.bfloat16)
    return nullcontext()
