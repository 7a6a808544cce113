"""The maps that are compared: those that the service serves, and others' in PyTorch."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from torch import Tensor

from app.bundle import Manifest
from app.maps.choice import Choice, choose
from app.maps.record import Record
from model.shapes import Sample
from model.vit import VisionTransformer
from tests.benchmarks.maps.attention import (
    attention_and_gradients,
    generic_attribution,
    grad_cam,
    positive_attention_gradient,
)
from tests.benchmarks.maps.occlusion import occlusion
from tests.benchmarks.maps.passes import Rules
from tests.benchmarks.maps.pixels import input_times_gradient, integrated_gradients
from tests.benchmarks.maps.relevance import AttnLrp, CpLrp

STEPS = 16  # of integrated gradients
Values = npt.NDArray[np.float32]  # (rows, columns)


class Score(Protocol):
    def __call__(self, images: npt.NDArray[np.uint8], label: int) -> npt.NDArray[np.float64]:
        """Scores (n,) of a class, for images (n, height, width, 3)."""
        ...


class Chunk(NamedTuple):
    """Some images, what the service computed of them, and the same for PyTorch."""

    samples: list[Sample]
    records: list[Record]
    manifest: Manifest
    score: Score
    model: VisionTransformer
    images: Tensor  # (B, 3, height, width), normalised
    predicted: Tensor  # (B,)

    def served(self, **choice: Any) -> list[Values | None]:
        return [choose(record.maps, self.manifest, Choice(**choice)).values for record in self.records]

    def on_grid(self, maps: Tensor) -> list[Values | None]:
        """Maps of patches (B, N)."""
        return list(maps.detach().numpy().reshape(-1, *self.manifest.tokens.grid))


class Method(NamedTuple):
    more: str  # passes through the network beside the one that gives the label
    of: Callable[[Chunk], list[Values | None]]  # None for an image that has no such map


def _evidence_of_true(chunk: Chunk) -> list[Values | None]:
    """Evidence is kept for the top labels only."""
    return [
        choose(record.maps, chunk.manifest, Choice(method="evidence", label=str(sample.label))).values
        if sample.label in record.maps.classes
        else None
        for sample, record in zip(chunk.samples, chunk.records, strict=True)
    ]


def _random(chunk: Chunk) -> list[Values | None]:
    grid = chunk.manifest.tokens.grid
    seeds = (int(record.image.pixels.sum()) for record in chunk.records)
    return [np.random.default_rng(seed).random(grid, dtype=np.float32) for seed in seeds]


def _of_attention(
    method: Callable[[list[Tensor], list[Tensor]], Tensor],
) -> Callable[[Chunk], list[Values | None]]:
    return lambda chunk: chunk.on_grid(method(*attention_and_gradients(chunk.model, chunk.images, chunk.predicted)))


def _of_pixels(rules: Rules) -> Callable[[Chunk], list[Values | None]]:
    return lambda chunk: chunk.on_grid(input_times_gradient(chunk.model, chunk.images, chunk.predicted, rules))


def _integrated_gradients(chunk: Chunk) -> list[Values | None]:
    """From the image's mean colour, which is also what deletion covers patches with."""
    baselines = chunk.images.mean(dim=(2, 3), keepdim=True).expand_as(chunk.images)
    return chunk.on_grid(integrated_gradients(chunk.model, chunk.images, chunk.predicted, baselines, steps=STEPS))


def _occlusion(chunk: Chunk) -> list[Values | None]:
    maps = [
        occlusion(record.image.pixels, partial(chunk.score, label=int(label)), patch=chunk.manifest.tokens.patch)
        for record, label in zip(chunk.records, chunk.predicted, strict=True)
    ]
    return [values.reshape(chunk.manifest.tokens.grid) for values in maps]


METHODS = {
    "last layer, mean over heads": Method("none", partial(Chunk.served, method="class_token")),
    "rollout": Method("none", partial(Chunk.served, method="rollout")),
    "evidence of the predicted label": Method("none", partial(Chunk.served, method="evidence")),
    "evidence of the true label": Method("none", _evidence_of_true),
    "positive evidence of the predicted label": Method("none", partial(Chunk.served, method="positive_evidence")),
    "AttnLRP": Method("1 backward", _of_pixels(AttnLrp())),
    "CP-LRP": Method("1 backward", _of_pixels(CpLrp())),
    "Chefer et al. 2021": Method("1 backward", _of_attention(generic_attribution)),
    "positive attention x gradient": Method("1 backward", _of_attention(positive_attention_gradient)),
    "GradCAM on the last attention": Method("1 backward", _of_attention(grad_cam)),
    "input x gradient": Method("1 backward", _of_pixels(Rules())),
    "integrated gradients": Method(f"{STEPS} forward and backward", _integrated_gradients),
    "occlusion of each patch": Method("64 forward", _occlusion),
    "random": Method("none", _random),
}
