"""How often graphs of lower precision give the answers of the float32 network."""

import time
from collections.abc import Iterator
from itertools import islice

import numpy as np
import torch
from PIL import Image
from tqdm import tqdm

from app.bundle import Agreement, ImageSpec
from app.inference.contract import Engine
from app.inference.labels import scores
from export.images import pixels, reference_images
from export.reference import normalised
from model.checkpoints.checkpoint import Checkpoint
from model.demo.shapes import LABELS, held_out

IMAGES, HELD_OUT = 96, 2000
BATCH = 8  # activations are rounded on the range of the whole batch
TIME_LIMIT_S = 60.0  # of an export; no further batch is begun after it


def measure_agreement(
    checkpoint: Checkpoint, spec: ImageSpec, engine: Engine, *, time_limit_s: float = TIME_LIMIT_S
) -> Agreement:
    """The lean graph against PyTorch, on as many images as `time_limit_s` allows.

    They are the reference images; for a model whose labels are the demo's shapes, the demo's held-out images, whose
    labels are known.
    """
    knows_shapes = checkpoint.labels == LABELS
    labelled = _held_out() if knows_shapes else ((image, -1) for image in reference_images(IMAGES))
    agreed: list[bool] = []
    right: list[bool] = []
    differences: list[float] = []
    end = time.monotonic() + time_limit_s
    batches = (HELD_OUT if knows_shapes else IMAGES) // BATCH
    for _ in tqdm(range(batches), desc="comparing with fp32", unit=f"x{BATCH}"):
        if differences and time.monotonic() > end:
            break
        images, labels = zip(*islice(labelled, BATCH), strict=True)
        batch = pixels(spec, images)
        with torch.inference_mode():
            expected = checkpoint.model(normalised(batch, checkpoint)).numpy()
        found = engine.run("classify", batch)["logits"]
        agreed += list(found.argmax(1) == expected.argmax(1))
        right += list(found.argmax(1) == labels)
        apart = [
            scores(f, checkpoint.score) - scores(e, checkpoint.score) for f, e in zip(found, expected, strict=True)
        ]
        differences += [float(np.abs(of_image).max()) for of_image in apart]
    return Agreement(
        pictures=len(differences),
        top1=float(np.mean(agreed)),
        probability_mean=float(np.mean(differences)),
        probability_max=max(differences),
        accuracy=float(np.mean(right)) if knows_shapes else None,
    )


def _held_out() -> Iterator[tuple[Image.Image, int]]:
    return ((Image.fromarray(sample.pixels), sample.label) for sample in held_out(HELD_OUT))
