"""Random numbers that depend on a seed and on the step alone, so that a run that goes on draws what it would have."""

from enum import IntEnum

import numpy as np
import torch


class Draw(IntEnum):
    """The uses of random numbers: each has its own."""

    ORDER = 0
    AUGMENTATION = 1
    DROPOUT = 2
    CORRUPTION = 3
    WEIGHTS = 4
    MEASUREMENT = 5
    CHOICE = 6


def seed_of(seed: int, draw: Draw, step: int) -> int:
    """A seed for torch, the same for the same three numbers."""
    return int(np.random.SeedSequence([seed, draw, step]).generate_state(1, np.uint64)[0])


def generator(seed: int, draw: Draw, step: int) -> torch.Generator:
    """On the CPU, so that every device sees the same numbers."""
    return torch.Generator().manual_seed(seed_of(seed, draw, step))
