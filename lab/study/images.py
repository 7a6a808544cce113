"""What the networks learn before they meet the task: the silhouettes of drawn shapes, white on black."""

import multiprocessing
import os
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from model.fit.samples import Samples
from model.shapes import draw

PRE_TRAINING = 32_000
COUNTS = {"pre-training": PRE_TRAINING, "fine-tuning": 2_400, "held out": 1_200}
CHUNK = 400  # shapes that one worker draws at a time


def shapes(folder: Path, part: str, *, count: int | None = None, side: int) -> Samples:
    """The first `count` shapes of a part, in images of `side` pixels, as `draw_shapes` left them in `folder`."""
    pixels = np.repeat(np.load(_file(folder, part, side))[:count, ..., None], 3, axis=3)
    labels = np.load(_file(folder, part))[:count]
    return Samples(pixels=torch.from_numpy(pixels), classes=torch.from_numpy(labels))


def draw_shapes(folder: Path, sides: Iterable[int]) -> None:
    """Draw what `shapes` reads, on all cores; what is there stays."""
    for part, side in [(part, side) for side in sides for part in COUNTS]:
        if not _file(folder, part, side).exists():
            _draw(folder, part, side)


def _draw(folder: Path, part: str, side: int) -> None:
    starts = range(0, COUNTS[part], CHUNK)
    fresh = multiprocessing.get_context("spawn")  # a fork has no threads, but waits for their locks
    with ProcessPoolExecutor(os.cpu_count(), fresh) as pool:
        chunks = pool.map(partial(_chunk, list(COUNTS).index(part), CHUNK, side), starts)
        parts = list(tqdm(chunks, total=len(starts), desc=f"drawing {side} pixels, {part}", unit=f"x{CHUNK}"))
    masks, labels = (np.concatenate(column) for column in zip(*parts, strict=True))
    np.save(_file(folder, part), labels)
    np.save(_file(folder, part, side), masks)


def _chunk(seed: int, count: int, side: int, start: int) -> tuple[np.ndarray, np.ndarray]:
    samples = [draw(np.random.default_rng([seed, start + i]), size=(side, side)) for i in range(count)]
    return np.stack([sample.mask for sample in samples]), np.array([sample.label for sample in samples])


def _file(folder: Path, part: str, side: int | None = None) -> Path:
    return folder / f"{part}-{'labels' if side is None else side}.npy"


def few(samples: Samples, each: int, *, seed: int) -> Samples:
    """`each` samples of every class, which the seed chooses."""
    order = torch.randperm(len(samples), generator=torch.Generator().manual_seed(seed))
    classes = samples.classes[order]
    rows = torch.cat([order[classes == label][:each] for label in classes.unique()])
    return Samples(pixels=samples.pixels[rows], classes=samples.classes[rows])
