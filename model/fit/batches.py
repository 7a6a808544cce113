"""Which samples each step learns from."""

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from model.fit.chance import Draw, generator


@dataclass(frozen=True, kw_only=True)
class Batches:
    """Every epoch has all samples once, in a new order, in batches that differ by one sample at most."""

    samples: int
    batch: int  # samples at most
    seed: int

    @property
    def an_epoch(self) -> int:
        """Steps in an epoch."""
        return math.ceil(self.samples / self.batch)

    def rows(self, step: int) -> Tensor:
        """Numbers of the samples of a step, int64 (B,)."""
        epoch, place = divmod(step, self.an_epoch)
        return _order(self.samples, self.seed, epoch).tensor_split(self.an_epoch)[place]


@lru_cache(maxsize=1)
def _order(samples: int, seed: int, epoch: int) -> Tensor:
    return torch.randperm(samples, generator=generator(seed, Draw.ORDER, epoch))
