"""Checkpoints of real sizes with random weights: speed does not depend on what a model has learned."""

from pathlib import Path
from typing import Any

import torch

from app.bundle import Precision
from export.bundle import write_bundle
from model.checkpoints.checkpoint import Checkpoint
from model.preprocessing import Preprocessing
from model.variants import variant as variant_of
from model.vit import VisionTransformer


def random_checkpoint(name: str, *, image_size: tuple[int, int] = (224, 224), **changes: Any) -> Checkpoint:
    torch.manual_seed(0)
    config = variant_of(name, image_size=image_size, **changes)
    return Checkpoint(
        name=name,
        family="vit-serve",
        architecture="vit",
        config=config,
        model=VisionTransformer(config).eval(),
        preprocessing=Preprocessing(
            size=config.image_size,
            resize_mode="shortest",
            resize_size=(image_size[0] * 8 // 7, image_size[1] * 8 // 7),
            crop="center",
            interpolation="bicubic",
            mean=(0.5, 0.5, 0.5),
            std=(0.5, 0.5, 0.5),
        ),
        labels=tuple(f"class {i}" for i in range(config.num_classes)),
    )


def random_bundle(folder: Path, variant: str, precision: Precision = "fp32", *, side: int = 224) -> Path:
    """A bundle of such a checkpoint in `folder`, for square images; written unless it is there."""
    bundle = folder / f"{variant.replace('/', '-')}-{precision}-{side}"
    if not bundle.exists():
        checkpoint = random_checkpoint(variant, image_size=(side, side))
        write_bundle(checkpoint, bundle, replace=False, precision=precision)
    return bundle
