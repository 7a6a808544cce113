"""What a list of networks hands to the sweep: one row for each network of a library."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import nn


@dataclass(frozen=True, kw_only=True)
class Row:
    """A network of a library with random weights: how far its logits are from the service's network."""

    name: str
    sizes: tuple[tuple[int, int], ...] = ()  # (height, width) of the pictures
    errors: tuple[float, ...] = ()  # largest absolute difference of a logit, by size
    largest: float = 0.0  # largest absolute logit
    rounding: float = 3e-6  # relative: an error beyond this is not of rounding alone
    refused: str = ""  # why it is not loaded; then there is nothing else

    @property
    def error(self) -> float:
        """Relative to the largest logit."""
        return max(self.errors, default=0.0) / (self.largest or 1.0)


class Peer(Protocol):
    """A module for each library: tests/parity/pytorch_image_models.py and the like."""

    TITLE: str

    def rows(self) -> Iterator[Row]: ...


def randomise(model: nn.Module) -> nn.Module:
    """Weights large enough that attention is far from uniform and every bias, norm and position matters."""
    torch.manual_seed(0)
    for name, parameter in model.named_parameters():
        nn.init.normal_(parameter, std=0.25)
        if "norm" in name and name.endswith("weight"):
            parameter.data += 1
    return model.eval()


@torch.inference_mode()
def logits(model: nn.Module, size: tuple[int, int]) -> torch.Tensor:
    """Of one picture of noise, which is the same for everyone who asks."""
    picture: torch.Tensor = torch.randn(1, 3, *size, generator=torch.Generator().manual_seed(1))
    found: torch.Tensor = model(picture)
    return found
