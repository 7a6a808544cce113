"""Toy checkpoints: the architecture of the real ones at a size that exports in seconds."""

from typing import Any

import torch

from model.checkpoints.checkpoint import Checkpoint
from model.config import ViTConfig
from model.preprocessing import Preprocessing
from model.variants import variant
from model.vit import VisionTransformer


def toy_model(config: ViTConfig, *, seed: int = 0) -> VisionTransformer:
    """Weights large enough that attention is far from uniform and every bias counts."""
    torch.manual_seed(seed)
    model = VisionTransformer(config)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    for name, parameter in model.named_parameters():
        if "norm" in name and name.endswith("weight"):
            torch.nn.init.uniform_(parameter, 0.5, 1.5)
    return model.eval()


def toy_config(*, image_size: tuple[int, int] = (24, 40), **changes: Any) -> ViTConfig:
    return variant("mu/8", **{"image_size": image_size, "num_classes": 7} | changes)


def toy_checkpoint(*, image_size: tuple[int, int] = (24, 40), **changes: Any) -> Checkpoint:
    config = toy_config(image_size=image_size, **changes)
    return Checkpoint(
        name="toy",
        family="vit-serve",
        architecture="vit",
        config=config,
        model=toy_model(config),
        preprocessing=Preprocessing(
            size=image_size,
            resize_mode="squash",
            resize_size=(image_size[0] + 8, image_size[1] + 8),
            crop="center",
            interpolation="bilinear",
            mean=(0.485, 0.456, 0.406),
            std=(0.229, 0.224, 0.225),
        ),
        labels=tuple("abcdefg"[: config.num_classes]),
    )
