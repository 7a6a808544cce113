"""Runs of learning: interrupted ones, and whether two end with the same weights."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import nn

import model.fit.snapshot


@contextmanager
def interrupted_at(step: int, objective: type[Any]) -> Iterator[None]:
    """Every step has its snapshot, and the loss of this one raises KeyboardInterrupt, which ends the block."""
    loss = objective.loss

    def interrupted(self: Any, now: int) -> Any:
        if now == step:
            raise KeyboardInterrupt
        return loss(self, now)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):  # noqa: PT012
        patch.setattr(model.fit.snapshot, "EVERY_S", 0)
        patch.setattr(objective, "loss", interrupted)
        yield


def same_weights(one: nn.Module, other: nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True))
