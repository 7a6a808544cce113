"""Checkpoints and numbers of torchvision's VisionTransformer, with the transform of its published weights."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn

from lab.golden.peers.huggingface import randomise

SIZES = {"image_size": 20, "patch_size": 4, "num_layers": 2, "num_heads": 3, "hidden_dim": 24, "mlp_dim": 40}
# What a file of a width of one's own cannot say.
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
STATED = {"heads": 3, "resize_mode": "shortest", "crop": "center", "mean": MEAN, "std": STD}


def make(folder: Path) -> None:
    from torchvision.models import VisionTransformer
    from torchvision.transforms import InterpolationMode
    from torchvision.transforms._presets import ImageClassification

    preset = partial(ImageClassification, crop_size=20)
    write(folder / "torchvision-vit", VisionTransformer(**SIZES, num_classes=5), preset(resize_size=25), "bilinear")
    bicubic = preset(resize_size=20, interpolation=InterpolationMode.BICUBIC)
    hidden = VisionTransformer(**SIZES, num_classes=5, representation_size=16)
    write(folder / "torchvision-hidden", hidden, bicubic, "bicubic")
    tuned = VisionTransformer(**SIZES)
    tuned.heads = nn.Linear(24, 7)
    write(folder / "torchvision-tuned", tuned, bicubic, "bicubic", old_names=True)


def write(case: Path, model: nn.Module, preset, interpolation: str, *, old_names: bool = False) -> None:
    randomise(model, norm="ln")
    state = model.state_dict()
    if old_names:  # what MLPBlock._load_from_state_dict translates
        state = {key.replace("mlp.0", "mlp.linear_1").replace("mlp.3", "mlp.linear_2"): state[key] for key in state}
    case.mkdir(parents=True, exist_ok=True)
    torch.save(state, case / "checkpoint.pth")
    resize = preset.resize_size[0]
    stated = {**STATED, "interpolation": interpolation, "resize_size": (resize, resize)}
    (case / "overrides.json").write_text(json.dumps({name: str(value) for name, value in stated.items()}) + "\n")
    picture = np.random.default_rng(0).integers(0, 256, (37, 53, 3), dtype=np.uint8)
    pixels = preset(Image.fromarray(picture))
    with torch.inference_mode():
        logits = model(pixels[None])[0]
    np.savez_compressed(case / "expected.npz", picture=picture, pixels=pixels.numpy(), logits=logits.numpy())
