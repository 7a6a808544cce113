"""Labelled images as what a frozen network gives, from which many probes are learned in seconds."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from app.inference.engine import Pixels
from export.folder import decoded
from export.image_spec import image_spec
from lab.benchmarks.learning.sets import digits, new_shapes
from lab.real.data import Data
from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import Checkpoint
from model.demo.__main__ import WEIGHTS
from model.fit.probe import ProbeRecipe, read_by_probe


class Frozen(NamedTuple):
    images: str
    features: Tensor  # float32 (N, F): what the head of a probe reads by default
    classes: Tensor  # (N,)


def frozen(data: Data) -> Iterator[Frozen]:
    """Scans of digits and drawn shapes with the demo's network, stamps with the trained one."""
    demo = load_checkpoint(WEIGHTS, overrides={"num_classes": "0"})
    for name, draw in {"digits": digits, "new shapes": new_shapes}.items():
        with tempfile.TemporaryDirectory() as folder:
            draw(Path(folder), 0)
            yield read_files(name, demo, sorted(Path(folder).glob("*/*/*.png")))
    yield read_files("stamps", load_checkpoint(data.network), [*data.stamps["train"], *data.stamps["test"]])


def read_files(name: str, checkpoint: Checkpoint, files: Sequence[Path]) -> Frozen:
    labels = sorted({file.parent.name for file in files})
    classes = torch.tensor([labels.index(file.parent.name) for file in files])
    spec = image_spec(checkpoint.preprocessing)
    images = [image.pixels for _, image in decoded(files, spec) if not isinstance(image, str)]
    return Frozen(name, read(checkpoint, np.stack(images)), classes)


def read(checkpoint: Checkpoint, images: Pixels) -> Tensor:
    """What the head of a probe reads of images as the service prepares them: float32 (N, F)."""
    return read_by_probe(checkpoint.model, checkpoint.preprocessing, torch.from_numpy(images), ProbeRecipe().read)
