"""How far graphs of lower precision give the answers of the float32 network."""

import time
from collections.abc import Iterator

import numpy as np
import torch
from PIL import Image
from tqdm import tqdm

from app.bundle import Agreement, ImageSpec
from app.engine import Engine
from app.labels import scores
from app.preprocess import preprocess
from export.pictures import reference_pictures
from export.reference import normalised
from model.checkpoints.checkpoint import Checkpoint
from model.demo.shapes import LABELS, held_out

PICTURES, HELD_OUT = 96, 2000
BATCH = 8  # activations are rounded on the range of the whole batch
SECONDS = 60.0  # after which no further batch is begun


def measure_agreement(checkpoint: Checkpoint, spec: ImageSpec, engine: Engine) -> Agreement:
    """The lean graph against PyTorch, over as many pictures as SECONDS allow."""
    agreed: list[bool] = []
    right: list[bool] = []
    differences: list[float] = []
    end = time.monotonic() + SECONDS
    for pictures, labels in tqdm(list(_batches(checkpoint)), desc="comparing with fp32", unit=f"x{BATCH}"):
        if differences and time.monotonic() > end:
            break
        pixels = np.stack([preprocess(picture, spec)[0] for picture in pictures])
        with torch.inference_mode():
            expected = checkpoint.model(normalised(pixels, checkpoint)).numpy()
        found = engine.run("classify", pixels)["logits"]
        agreed += list(found.argmax(1) == expected.argmax(1))
        right += list(found.argmax(1) == labels)
        apart = [
            scores(f, checkpoint.score) - scores(e, checkpoint.score) for f, e in zip(found, expected, strict=True)
        ]
        differences += [np.abs(of_picture).max() for of_picture in apart]
    return Agreement(
        pictures=len(differences),
        top1=float(np.mean(agreed)),
        probability_mean=float(np.mean(differences)),
        probability_max=float(np.max(differences)),
        accuracy=float(np.mean(right)) if _knows_shapes(checkpoint) else None,
    )


def _knows_shapes(checkpoint: Checkpoint) -> bool:
    return checkpoint.labels == LABELS


def _batches(checkpoint: Checkpoint) -> Iterator[tuple[list[Image.Image], list[int]]]:
    """The reference pictures, with no label; for a model that names the demo's shapes its held-out pictures."""
    if _knows_shapes(checkpoint):
        drawn = [(Image.fromarray(p.pixels), p.label) for p in held_out(HELD_OUT)]
    else:
        drawn = [(picture, -1) for picture in reference_pictures(PICTURES)]
    for start in range(0, len(drawn), BATCH):
        pictures, labels = zip(*drawn[start : start + BATCH], strict=True)
        yield list(pictures), list(labels)
