"""Lets a trainer run one step for each line that it reads, and prints how many milliseconds each took.

Imports only what every trainer needs.
"""

import sys
import time

import torch
from torch import Tensor

SIZE, CLASSES = 224, 1000
RATE, WEIGHT_DECAY, CLIP = 1e-3, 0.05, 1.0
STEPS = 10**6  # more than are ever run


def device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Pace:
    """`begin` is called at the start of every step; a line has the size of the batch, which stays the same."""

    def __init__(self) -> None:
        self.batch = self._line()
        print(0.0, flush=True)  # ready, no step yet
        self._start: float | None = None

    def begin(self) -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        if self._start is not None:
            print(1000 * (time.perf_counter() - self._start), flush=True)
        self._line()
        self._start = time.perf_counter()

    def samples(self) -> tuple[Tensor, Tensor]:
        """The batch of every step: normalised images (B, 3, SIZE, SIZE) and their classes (B,)."""
        chance = torch.Generator().manual_seed(0)
        images = torch.randn(self.batch, 3, SIZE, SIZE, generator=chance)
        return images.to(device()), torch.randint(CLASSES, (self.batch,), generator=chance).to(device())

    def _line(self) -> int:
        line = sys.stdin.readline()
        if not line:
            sys.exit()
        return int(line)
