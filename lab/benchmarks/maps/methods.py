"""The maps that are compared: those that the service serves, and others' in PyTorch."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from torch import Tensor

from app.bundle import Manifest
from app.images.preprocess import PreprocessedImage
from app.maps.attention import choose
from app.maps.choice import Choice
from app.maps.occlusion import filled, occluded
from app.maps.record import Maps as AllMaps
from lab.benchmarks.maps.gradients import (
    attention_and_gradients,
    generic_attribution,
    grad_cam,
    input_times_gradient,
    integrated_gradients,
    positive_attention_gradient,
)
from lab.benchmarks.maps.passes import AttnLrp, CpLrp, Rules
from model.shapes import Sample
from model.vit import VisionTransformer

STEPS = 16  # of integrated gradients
Values = npt.NDArray[np.float32]  # (rows, columns)
Maps = list[Values | None]  # None for an image that has no such map


class Explained(NamedTuple):
    """One image and its maps."""

    maps: AllMaps
    image: PreprocessedImage


class Chunk(NamedTuple):
    """Some images, what the service computed of them, and the same for PyTorch."""

    samples: list[Sample]
    records: list[Explained]
    manifest: Manifest
    score: Callable[..., npt.NDArray[np.float64]]  # (n,) of a `label`, for images (n, height, width, 3)
    model: VisionTransformer
    images: Tensor  # (B, 3, height, width), normalised
    predicted: Tensor  # (B,)

    def served(self, **choice: Any) -> Maps:
        return [choose(record.maps, self.manifest, Choice(**choice)).values for record in self.records]

    def on_grid(self, maps: Tensor) -> Maps:
        """Maps of patches (B, N)."""
        return list(maps.detach().numpy().reshape(-1, *self.manifest.tokens.grid))


class Method(NamedTuple):
    more: str  # passes through the network beside the one that gives the label
    of: Callable[[Chunk], Maps]


def _evidence_of_true(chunk: Chunk) -> Maps:
    """Evidence is kept for the top labels only."""
    choices = [Choice(method="evidence", label=str(sample.label)) for sample in chunk.samples]
    return [
        choose(record.maps, chunk.manifest, choice).values if sample.label in record.maps.classes else None
        for sample, record, choice in zip(chunk.samples, chunk.records, choices, strict=True)
    ]


def _random(chunk: Chunk) -> Maps:
    grid = chunk.manifest.tokens.grid
    seeds = (int(record.image.pixels.sum()) for record in chunk.records)
    return [np.random.default_rng(seed).random(grid, dtype=np.float32) for seed in seeds]


def _of_attention(
    method: Callable[[list[Tensor], list[Tensor]], Tensor],
) -> Callable[[Chunk], Maps]:
    return lambda chunk: chunk.on_grid(method(*attention_and_gradients(chunk.model, chunk.images, chunk.predicted)))


def _of_pixels(rules: Rules) -> Callable[[Chunk], Maps]:
    return lambda chunk: chunk.on_grid(input_times_gradient(chunk.model, chunk.images, chunk.predicted, rules))


def _integrated_gradients(chunk: Chunk) -> Maps:
    """From the image's mean colour, which is also what deletion covers patches with."""
    baselines = chunk.images.mean(dim=(2, 3), keepdim=True).expand_as(chunk.images)
    return chunk.on_grid(integrated_gradients(chunk.model, chunk.images, chunk.predicted, baselines, steps=STEPS))


def occlusion(
    pixels: npt.NDArray[np.uint8], score: Callable[[npt.NDArray[np.uint8]], npt.NDArray[np.float64]], *, patch: int
) -> npt.NDArray[np.float32]:
    """(patches,), with the mean colour in place of each patch of `pixels` (height, width, 3).

    `score` is of one class, (n,) for images (n, height, width, 3). Zeiler & Fergus 2014, arXiv 1311.2901, section 4.2.
    """
    patches = (pixels.shape[0] // patch) * (pixels.shape[1] // patch)
    covered = np.vstack([np.zeros((1, patches), bool), np.eye(patches, dtype=bool)])
    scores = score(occluded(pixels, filled(pixels, "mean", patch=patch), covered, patch=patch))
    fall: npt.NDArray[np.float32] = (scores[0] - scores[1:]).astype(np.float32)
    return fall


def _occlusion(chunk: Chunk) -> Maps:
    patch, grid = chunk.manifest.tokens.patch, chunk.manifest.tokens.grid
    scores = [partial(chunk.score, label=int(label)) for label in chunk.predicted]
    return [
        occlusion(record.image.pixels, score, patch=patch).reshape(grid)
        for record, score in zip(chunk.records, scores, strict=True)
    ]


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
