"""The images of each step."""

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from model.fit.augment import Augmentation, augmented
from model.fit.chance import Draw, generator
from model.fit.samples import Samples


@dataclass(frozen=True, kw_only=True)
class Batches:
    """Every epoch has all samples once, in a new order, in batches that differ by one sample at most.

    A batch depends on the seed and its step alone. Raises ValueError if it has no sample.
    """

    samples: Samples
    size: tuple[int, int]  # (height, width) of the network's input
    batch: int  # samples at most
    seed: int
    augmentation: Augmentation
    among: Tensor | None = None  # numbers of the samples that are learned from, int64 (N,); None: all

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise ValueError(f"batch must be at least 1, not {self.batch}")

    @property
    def steps_per_epoch(self) -> int:
        return math.ceil(self._count / self.batch)

    def rows(self, step: int) -> Tensor:
        """Numbers of the samples of a step, int64 (B,)."""
        epoch, place = divmod(step, self.steps_per_epoch)
        order = _order(self._count, self.seed, epoch).tensor_split(self.steps_per_epoch)[place]
        return order if self.among is None else self.among[order]

    @property
    def _count(self) -> int:
        return len(self.samples if self.among is None else self.among)

    def pixels(self, step: int, device: torch.device) -> Tensor:
        """Augmented, float32 (B, 3, height, width) from 0 to 255."""
        chance = generator(self.seed, Draw.AUGMENTATION, step)
        return augmented(self.samples.pixels[self.rows(step)].to(device), self.size, self.augmentation, chance)

    def classes(self, step: int, device: torch.device) -> Tensor:
        """int64 (B,)."""
        return self.samples.classes[self.rows(step)].to(device)


@lru_cache(maxsize=1)
def _order(samples: int, seed: int, epoch: int) -> Tensor:
    return torch.randperm(samples, generator=generator(seed, Draw.ORDER, epoch))
