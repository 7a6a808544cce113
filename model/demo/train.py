"""Trains the demo model from scratch: labels of shapes for the class token, and an auxiliary loss on every patch.

A ViT has no notion of locality and learns shapes slowly from labels alone (the paper's point). The masks are known, so
a second head predicts for each patch the shape that it is on, or background; that head is not saved.
"""

import math
import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count, permutations
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from model.config import ViTConfig
from model.fit.loop import Course, learn
from model.fit.measure import normalise
from model.fit.optimiser import linear
from model.fit.snapshot import Snapshot, digest_of_weights
from model.preprocessing import Preprocessing
from model.progress import track
from model.shapes import LABELS, draw
from model.vit import VisionTransformer

CONFIG = ViTConfig(image_size=(64, 64), patch_size=8, width=128, depth=6, mlp_dim=512, heads=4, num_classes=len(LABELS))
PREPROCESSING = Preprocessing(
    size=CONFIG.image_size,
    resize_mode="shortest",
    resize_size=CONFIG.image_size,
    crop="center",
    interpolation="bicubic",
    mean=(0.5, 0.5, 0.5),
    std=(0.5, 0.5, 0.5),
)
ON_SHAPE = 0.3  # share of a patch that the mask has to cover for the patch to count as on the shape
BACKGROUND = len(LABELS)  # the patch head's extra class
CHUNK = 500  # images that one worker draws at a time


@dataclass(frozen=True, kw_only=True)
class Recipe:
    images: int = 60_000
    steps: int = 8_000
    batch: int = 64
    seed: int = 0
    muon_rate: float = 4e-3
    adam_rate: float = 1e-3
    weight_decay: float = 0.05
    warm_up: int = 200
    average_decay: float = 0.999


@dataclass(frozen=True, kw_only=True)
class Dataset:
    pixels: Tensor  # uint8 (N, 3, 64, 64)
    labels: Tensor  # int64 (N,)
    covered: Tensor  # uint8 (N, 8, 8): 1 where the patch is on the shape


def _draw(seed: int, number: int) -> tuple[np.ndarray, int, np.ndarray]:
    sample, (rows, columns), p = draw(np.random.default_rng([seed, number])), CONFIG.grid, CONFIG.patch_size
    covered = sample.mask.reshape(rows, p, columns, p).mean(axis=(1, 3)) / 255 > ON_SHAPE
    return sample.pixels.transpose(2, 0, 1), sample.label, covered.astype(np.uint8)


def draw_dataset(recipe: Recipe) -> Dataset:
    """Draw the training images on all cores."""
    fresh = multiprocessing.get_context("spawn")  # a fork has no threads, but waits for their locks
    with ProcessPoolExecutor(os.cpu_count(), fresh) as pool:
        drawn = pool.map(partial(_draw, recipe.seed), range(recipe.images), chunksize=CHUNK)
        samples = list(track(drawn, "drawing", of=recipe.images))
    pixels, labels, covered = (torch.from_numpy(np.stack(column)) for column in zip(*samples, strict=True))
    return Dataset(pixels=pixels, labels=labels, covered=covered)


def batches(data: Dataset, recipe: Recipe, *, start: int = 0) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Endless batches, without the first `start`. Each is flipped, rotated and recoloured as a whole.

    That changes no label.
    """
    generator = torch.Generator().manual_seed(recipe.seed)
    channel_orders = list(permutations(range(3)))
    for epoch in count():
        rows_of_epoch = torch.randperm(len(data.labels), generator=generator).split(recipe.batch)
        for step, rows in enumerate(rows_of_epoch, start=epoch * len(rows_of_epoch)):
            turns, flip, order, invert = torch.randint(24, (4,), generator=generator).tolist()
            if step < start:
                continue
            pixels, covered = data.pixels[rows], data.covered[rows]
            pixels, covered = pixels.rot90(turns % 4, (2, 3)), covered.rot90(turns % 4, (1, 2))
            if flip % 2:
                pixels, covered = pixels.flip(3), covered.flip(2)
            pixels = pixels[:, list(channel_orders[order % 6])]
            if invert % 2:
                pixels = 255 - pixels
            yield pixels, data.labels[rows], covered.flatten(1)


@dataclass
class Shapes:
    """The objective: the label of each image, and with a head beside it that of each patch."""

    network: VisionTransformer
    patch_head: nn.Linear
    data: Dataset
    recipe: Recipe
    rest: Iterator[tuple[Tensor, Tensor, Tensor]] | None = None  # of the batches

    def loss(self, step: int) -> Tensor:
        self.rest = self.rest or batches(self.data, self.recipe, start=step)
        pixels, labels, covered = next(self.rest)
        tokens = self.network.encode(normalise(pixels, PREPROCESSING))
        patch_labels = torch.where(covered.bool(), labels[:, None], BACKGROUND)
        patch_logits = self.patch_head(tokens[:, 1:])
        of_patches = F.cross_entropy(patch_logits.flatten(0, 1), patch_labels.flatten())
        return F.cross_entropy(self.network.classify(tokens), labels) + of_patches

    def measure(self) -> None:
        """Nothing is held out while it learns: new images are drawn to evaluate it."""


def train(recipe: Recipe, *, data: Dataset | None = None, work: Path | None = None) -> VisionTransformer:
    """Run the recipe, or what is left of it in the folder `work`, and return the averaged weights, in eval mode."""
    data = data or draw_dataset(recipe)
    torch.manual_seed(recipe.seed)
    network = VisionTransformer(CONFIG)
    patch_head = nn.Linear(CONFIG.width, len(LABELS) + 1)
    known = {**asdict(recipe), "network": digest_of_weights(network)}
    snapshot = Snapshot(work, "shapes", identity=known)
    matrices = [p for p in network.blocks.parameters() if p.ndim == 2]
    others = [p for p in [*network.parameters(), *patch_head.parameters()] if all(p is not m for m in matrices)]
    optimisers: list[Optimizer] = [
        torch.optim.Muon(
            matrices, lr=recipe.muon_rate, weight_decay=recipe.weight_decay, adjust_lr_fn="match_rms_adamw"
        ),
        torch.optim.AdamW(others, lr=recipe.adam_rate, weight_decay=recipe.weight_decay, fused=True),
    ]
    course = Course(
        steps=recipe.steps,
        steps_per_epoch=math.ceil(len(data.labels) / recipe.batch),
        schedule=linear,
        warm_up=recipe.warm_up,
    )
    averaged = AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(recipe.average_decay))
    optimisers[-1].register_step_post_hook(lambda *_: averaged.update_parameters(network))
    objective, beside = Shapes(network, patch_head, data, recipe), [patch_head, averaged]
    learn(objective, course, optimisers, beside=beside, snapshot=snapshot)
    assert isinstance(averaged.module, VisionTransformer)
    return averaged.module.eval()
