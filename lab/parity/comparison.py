"""The rows that each peer yields: one for each network of a library, or one for each of its image pipelines."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from app.inference.engine import DIRECTION
from export.graphs import ExplainGraph
from export.reference import normalised
from model.checkpoints.checkpoint import Checkpoint
from tests.support.operators import operators_in_torch

Network = Callable[[Tensor], Tensor]
Size = tuple[int, int]
RECEIPT = 1e-5  # of a cosine whose parts cancel


@dataclass(frozen=True, kw_only=True)
class Row:
    """A network of a library with random weights: how far its logits are from the service's network."""

    name: str
    module: str = ""  # of the library, where its networks are in several
    sizes: Sequence[Sequence[int]] = ()  # (height, width) of the images
    errors: Sequence[float] = ()  # largest absolute difference of a logit, by size
    largest: float = 0.0  # largest absolute logit
    # Largest difference of a number of a token, relative to the largest, after the final norm and the first block.
    tokens: float | None = None
    # Difference of what the receipt for another image adds up to from the cosine of the library's own embeddings,
    # relative to that.
    receipt: float | None = None
    rounding: float = 3e-6  # relative; a larger error is not of rounding alone
    refused: str = ""  # why it is not loaded; the fields above are then empty

    @property
    def error(self) -> float:
        """The larger one of logits, relative to the largest, and of tokens."""
        return max(max(self.errors, default=0.0) / (self.largest or 1.0), self.tokens or 0.0)

    @property
    def far(self) -> bool:
        """Whether rounding does not explain a difference."""
        return not (self.error <= self.rounding and (self.receipt or 0.0) <= RECEIPT)


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """A library's preprocessing: how far its pixels are from those that the service gives its network."""

    name: str
    size: Sequence[int]  # (height, width) of the network's input
    images: int
    equal: int  # images with every 8-bit value the same
    error: float  # largest absolute difference of a value, in 8-bit steps
    rounding: float = 1e-3  # steps; a larger error is not of rounding alone
    reason: str = ""  # of a difference that is known

    @property
    def far(self) -> bool:
        return not self.error <= self.rounding


def randomise(model: nn.Module, *, std: float = 0.25) -> nn.Module:
    """Weights large enough that attention is far from uniform and every bias, norm and position matters.

    The default suits a width of 48: sums over more weights need smaller ones.
    """
    torch.manual_seed(0)
    for name, parameter in model.named_parameters():
        nn.init.normal_(parameter, std=std)
        if re.search(r"norm|\bln", name) and name.endswith("weight"):
            parameter.data += 1
    return model.eval()


@torch.inference_mode()
def logits(model: Network, size: Size) -> Tensor:
    """Of one image of noise, the same in every call."""
    return model(noise(size))


def noise(size: Size) -> Tensor:
    return torch.randn(1, 3, *size, generator=torch.Generator().manual_seed(1))


@torch.inference_mode()
def of_tokens(checkpoint: Checkpoint, size: Size, theirs: Callable[[Tensor], tuple[Tensor, Tensor]]) -> float:
    """`tokens` of a Row, where `theirs` gives those after the final norm and after the first block, each (1, T, D)."""
    model, (height, width) = checkpoint.model, checkpoint.preprocessing.size
    layers = model.layers(noise(size)[..., :height, :width])
    pairs = zip((model.norm(layers[-1]), layers[1]), theirs(noise(size)), strict=True)
    return max(((ours - own).abs().max() / own.abs().max()).item() for ours, own in pairs)


@torch.inference_mode()
def of_receipt(checkpoint: Checkpoint, size: Size, theirs: Network) -> float:
    """`receipt` of a Row, where `theirs` gives the library's own embeddings of two images, (2, F)."""
    height, width = checkpoint.preprocessing.size
    pixels = torch.randint(256, (2, *size, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    cosine = F.cosine_similarity(*theirs(normalised(pixels.numpy(), checkpoint)).double(), dim=0)
    graph = ExplainGraph(checkpoint, "fp32")
    inputs = graph.example(2) | {"images": pixels[:, :height, :width]}
    with operators_in_torch():
        embedding = graph(**inputs)[graph.outputs.index("embedding")]
        inputs["directions"][0, 0] = F.normalize(embedding[1], dim=0)
        if "asked" in inputs:
            inputs["asked"][:, 0] = DIRECTION
        found = dict(zip(graph.outputs, graph(**inputs), strict=False))
    parts = (found[name][0, 0].double().sum() for name in ("evidence", "evidence_rest"))
    return (sum(parts) / embedding[0].double().norm() / cosine - 1).abs().item()


def read_by(heads: Sequence[nn.Module], answers: Network) -> Network:
    """What the heads of a library's network read, in their mean, (B, F)."""

    def embedding(images: Tensor) -> Tensor:
        read: list[Tensor] = []
        hooks = [head.register_forward_pre_hook(lambda _, given: read.append(given[0])) for head in heads]
        answers(images)
        for hook in hooks:
            hook.remove()
        return torch.stack(read).mean(0)

    return embedding


def seen(checkpoint: Checkpoint) -> Network:
    """The service's network on a crop of which it takes what its patches cover."""
    height, width = checkpoint.preprocessing.size
    return lambda images: checkpoint.model(images[..., :height, :width])


def difference(sizes: Sequence[Size], ours: Sequence[Network], theirs: Sequence[Network]) -> dict[str, Any]:
    """`sizes`, `errors` and `largest` of a Row, from a network of each side for each size."""
    pairs = [(logits(a, size), logits(b, size)) for a, b, size in zip(ours, theirs, sizes, strict=True)]
    errors = tuple((a - b).abs().max().item() for a, b in pairs)
    return {"sizes": sizes, "errors": errors, "largest": min(b.abs().max().item() for _, b in pairs)}
