"""Trains the demo model from scratch: labels of shapes for the class token, and an auxiliary loss on every patch.

A ViT has no notion of locality and learns shapes slowly from labels alone (the paper's point). The masks are known, so
a second head predicts for each patch the shape that it is on, or background; that head is not saved.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from tqdm import tqdm

from model.config import ViTConfig
from model.demo.shapes import LABELS, draw
from model.vit import VisionTransformer

CONFIG = ViTConfig(image_size=(64, 64), patch_size=8, width=128, depth=6, mlp_dim=512, heads=4, num_classes=len(LABELS))
MEAN = STD = (0.5, 0.5, 0.5)
ON_SHAPE = 0.3  # share of a patch that the mask has to cover for the patch to count as on the shape
BACKGROUND = len(LABELS)  # the patch head's extra class
CHUNK = 500  # images that one worker draws at a time


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything that the weights depend on."""

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


def _draw_chunk(seed: int, start: int) -> tuple[np.ndarray, ...]:
    samples = [draw(np.random.default_rng([seed, start + i])) for i in range(CHUNK)]
    rows, columns = CONFIG.grid
    masks = np.stack([s.mask for s in samples]).reshape(CHUNK, rows, CONFIG.patch_size, columns, CONFIG.patch_size)
    covered = masks.mean(axis=(2, 4)) / 255 > ON_SHAPE
    pixels = np.stack([s.pixels for s in samples]).transpose(0, 3, 1, 2)
    return pixels, np.array([s.label for s in samples]), covered.astype(np.uint8)


def draw_dataset(recipe: Recipe) -> Dataset:
    """Draw the training images on all cores."""
    starts = range(0, recipe.images, CHUNK)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        chunks = pool.map(_draw_chunk, [recipe.seed] * len(starts), starts)
        parts = list(tqdm(chunks, total=len(starts), desc="drawing", unit=f"x{CHUNK}"))
    pixels, labels, covered = (torch.from_numpy(np.concatenate(column)) for column in zip(*parts, strict=True))
    return Dataset(pixels=pixels, labels=labels, covered=covered)


def batches(data: Dataset, recipe: Recipe) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Endless batches. Each is flipped, rotated and recoloured as a whole, which changes no label."""
    generator = torch.Generator().manual_seed(recipe.seed)
    channel_orders = list(permutations(range(3)))
    while True:
        for rows in torch.randperm(len(data.labels), generator=generator).split(recipe.batch):
            pixels, covered = data.pixels[rows], data.covered[rows]
            turns, flip, order, invert = torch.randint(24, (4,), generator=generator).tolist()
            pixels, covered = pixels.rot90(turns % 4, (2, 3)), covered.rot90(turns % 4, (1, 2))
            if flip % 2:
                pixels, covered = pixels.flip(3), covered.flip(2)
            pixels = pixels[:, list(channel_orders[order % 6])]
            if invert % 2:
                pixels = 255 - pixels
            yield pixels, data.labels[rows], covered.flatten(1)


def normalise(pixels: Tensor) -> Tensor:
    """uint8 (B, 3, height, width) to the network's input."""
    return (pixels.float() / 255 - MEAN[0]) / STD[0]


def train(recipe: Recipe, *, data: Dataset | None = None) -> VisionTransformer:
    """Run the recipe and return the averaged weights, in eval mode."""
    data = data or draw_dataset(recipe)
    torch.manual_seed(recipe.seed)
    model = VisionTransformer(CONFIG).train()
    patch_head = nn.Linear(CONFIG.width, len(LABELS) + 1)
    average = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(recipe.average_decay)
    )
    matrices = [p for p in model.blocks.parameters() if p.ndim == 2]
    others = [p for p in [*model.parameters(), *patch_head.parameters()] if all(p is not m for m in matrices)]
    optimizers = [
        torch.optim.Muon(
            matrices, lr=recipe.muon_rate, weight_decay=recipe.weight_decay, adjust_lr_fn="match_rms_adamw"
        ),
        torch.optim.AdamW(others, lr=recipe.adam_rate, weight_decay=recipe.weight_decay, fused=True),
    ]

    def rate(step: int) -> float:
        return min(1.0, (step + 1) / recipe.warm_up) * max(0.0, 1 - step / recipe.steps)

    schedules = [torch.optim.lr_scheduler.LambdaLR(optimizer, rate) for optimizer in optimizers]
    progress = tqdm(range(recipe.steps), desc="training", unit="step", mininterval=2)
    correct = 0.0
    for _, (pixels, labels, covered) in zip(progress, batches(data, recipe), strict=False):
        tokens = model.encode(normalise(pixels))
        logits = model.classify(tokens)
        patch_labels = torch.where(covered.bool(), labels[:, None], BACKGROUND)
        patch_logits = patch_head(tokens[:, 1:])
        loss = F.cross_entropy(logits, labels) + F.cross_entropy(patch_logits.flatten(0, 1), patch_labels.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer, schedule in zip(optimizers, schedules, strict=True):
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        average.update_parameters(model)
        correct = 0.98 * correct + 0.02 * (logits.argmax(1) == labels).float().mean().item()
        progress.set_postfix(loss=f"{loss.item():.3f}", accuracy=f"{correct:.3f}")
    trained = average.module.eval()
    assert isinstance(trained, VisionTransformer)
    return trained
