"""Models that know images: toys that know drawn ones, and a bundle to which every image is strange."""

from dataclasses import replace
from pathlib import Path

import torch

from export.familiarity import learn
from export.fit.known import read
from export.image_spec import image_spec
from export.images import reference_pixels
from model.checkpoints.checkpoint import Checkpoint
from tests.support.edited import copied

DRAWN = 48  # images


def knowing(checkpoint: Checkpoint) -> Checkpoint:
    """The same, which knows the reference images."""
    pixels = torch.from_numpy(reference_pixels(image_spec(checkpoint.preprocessing), DRAWN))
    features, classes = read(checkpoint.model, pixels, checkpoint.preprocessing)
    return replace(checkpoint, known=learn(features, classes, learned=0, groups=torch.arange(DRAWN)))


def strange_bundle(folder: Path, *, known: int) -> Path:
    """A copy in `folder` of the demo bundle, for which all images are unlike so many that it knows."""
    held_out = {"unlike": known * [-1000.0], "offsets": {}}
    familiarity = {"pictures": known, "held_out": known, "source": "folder"}
    return copied(folder / "strange", familiarity=familiarity, held_out=held_out)
