"""How far graphs of lower precision give the answers of the float32 network."""

import time
from collections.abc import Iterator
from itertools import islice

import numpy as np
import torch
from PIL import Image
from tqdm import tqdm

from app.bundle import Agreement, ImageSpec
from app.images.preprocess import preprocess
from app.inference.contract import Engine
from app.inference.labels import scores
from export.pictures import reference_pictures
from export.reference import normalised
from model.checkpoints.checkpoint import Checkpoint
from model.demo.shapes import LABELS, held_out

PICTURES, HELD_OUT = 96, 2000
BATCH = 8  # activations are rounded on the range of the whole batch
SECONDS = 60.0  # of an export, after which no further batch is begun


def measure_agreement(
    checkpoint: Checkpoint, spec: ImageSpec, engine: Engine, *, seconds: float = SECONDS
) -> Agreement:
    """The lean graph against PyTorch on the reference pictures; for a model that names the demo's shapes on its
    held-out pictures, whose labels are known. Over as many as `seconds` allow."""
    knows_shapes = checkpoint.labels == LABELS
    labelled = _held_out() if knows_shapes else ((picture, -1) for picture in reference_pictures(PICTURES))
    agreed: list[bool] = []
    right: list[bool] = []
    differences: list[float] = []
    end = time.monotonic() + seconds
    batches = (HELD_OUT if knows_shapes else PICTURES) // BATCH
    for _ in tqdm(range(batches), desc="comparing with fp32", unit=f"x{BATCH}"):
        if differences and time.monotonic() > end:
            break
        pictures, labels = zip(*islice(labelled, BATCH), strict=True)
        pixels = np.stack([preprocess(picture, spec.framing)[0] for picture in pictures])
        with torch.inference_mode():
            expected = checkpoint.model(normalised(pixels, checkpoint)).numpy()
        found = engine.run("classify", pixels)["logits"]
        agreed += list(found.argmax(1) == expected.argmax(1))
        right += list(found.argmax(1) == labels)
        apart = [
            scores(f, checkpoint.score) - scores(e, checkpoint.score) for f, e in zip(found, expected, strict=True)
        ]
        differences += [float(np.abs(of_picture).max()) for of_picture in apart]
    return Agreement(
        pictures=len(differences),
        top1=float(np.mean(agreed)),
        probability_mean=float(np.mean(differences)),
        probability_max=max(differences),
        accuracy=float(np.mean(right)) if knows_shapes else None,
    )


def _held_out() -> Iterator[tuple[Image.Image, int]]:
    return ((Image.fromarray(picture.pixels), picture.label) for picture in held_out(HELD_OUT))
