"""The service's 8-bit pixels against the libraries' own Pillow pipelines, on images of many sizes."""

import math
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from app.images.preprocess import preprocess
from export.image_spec import image_spec
from lab.parity.comparison import Pipeline
from model.checkpoints.families.timm_architectures import table
from model.checkpoints.load import describe_checkpoint
from model.shapes import draw

IMAGES = 50
SHORTEST, LONGEST = 20, 700  # sides in pixels

# transformers chooses these processors where torchvision is installed.
WITH_TORCHVISION = {
    "rounding": math.inf,
    "reason": "resizes with torchvision: the same filter, rounded in another way, and always horizontally first."
    " Pillow 13 resizes some tall images vertically first (Pillow #9549), and clips in between, which shows in noise."
    " We follow the processor with Pillow, which transformers takes where there is no torchvision",
}
FLOATS = {
    "rounding": 1.0,
    "reason": "resizes floats with torchvision, and rounds nothing to 8 bits. transformers has no such processor with"
    " Pillow",
}


class Case(NamedTuple):
    name: str
    pixels: Callable[[Image.Image], Tensor]  # their pipeline: float32 (3, height, width)
    checkpoint: Path  # for us
    overrides: dict[str, str]
    exception: dict[str, Any]  # of a Pipeline whose difference is known


def rows() -> Iterator[Pipeline]:
    for cases in (timm, torchvision, transformers):
        with tempfile.TemporaryDirectory() as folder:
            for case in cases(Path(folder)):
                yield compare(case)


def compare(case: Case) -> Pipeline:
    spec = image_spec(describe_checkpoint(case.checkpoint, overrides=case.overrides).preprocessing)
    equal, largest = 0, 0.0
    for image in images():
        ours = preprocess(image, spec)[0].astype(np.float64)
        theirs = (np.asarray(case.pixels(image), np.float64).transpose(1, 2, 0) * spec.std + spec.mean) * 255
        equal += np.array_equal(ours, theirs.round())
        largest = max(largest, float(np.abs(ours - theirs).max()))
    return Pipeline(name=case.name, size=spec.size, images=IMAGES, equal=equal, error=largest, **case.exception)


@cache
def images() -> tuple[Image.Image, ...]:
    """Portrait and landscape, noise and drawn shapes in turn."""
    rng = np.random.default_rng(0)
    pictures = []
    for i in range(IMAGES):
        width, height = (int(side) for side in rng.integers(SHORTEST, LONGEST, 2, endpoint=True))
        noise = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
        pictures.append(Image.fromarray(noise if i % 2 else draw(rng, size=(width, height)).pixels))
    return tuple(pictures)


def timm(folder: Path) -> Iterator[Case]:
    """Every published recipe, and some whose input is not square."""
    import timm
    from timm.data import create_transform, resolve_data_config
    from timm.models import save_for_hf

    keys = ("input_size", "crop_pct", "crop_mode", "interpolation")
    recipes = {str([recipe[key] for key in keys]): recipe for recipe in table()["recipes"]}
    for mode, share, interpolation in product(("center", "squash"), (0.875, 1.0), ("bilinear", "bicubic")):
        wide = dict(zip(keys, ([3, 224, 288], share, mode, interpolation), strict=True))
        recipes[str(wide)] = {**table()["recipes"][0], **wide}
    for i, recipe in enumerate(recipes.values()):
        size = tuple(recipe["input_size"][1:])
        sizes = {"img_size": size, "patch_size": math.gcd(*size), "embed_dim": 12, "depth": 1, "num_heads": 1}
        model = timm.create_model("vit_tiny_patch16_224", **sizes, pretrained_cfg_overlay=recipe)
        save_for_hf(model, folder / str(i), safe_serialization=True)
        stated = f"{recipe['crop_mode']}, crop_pct {recipe['crop_pct']}, {recipe['interpolation']}"
        transform = create_transform(**resolve_data_config(model=model))
        yield Case(f"timm, {stated}", transform, folder / str(i), {}, {})


def torchvision(folder: Path) -> Iterator[Case]:
    """Every entry of the five constructors' weights."""
    from torchvision import models

    for constructor in ("vit_b_16", "vit_b_32", "vit_l_16", "vit_l_32", "vit_h_14"):
        for entry in models.get_model_weights(constructor):
            transform = entry.transforms()
            with torch.device("meta"):
                network = getattr(models, constructor)(image_size=transform.crop_size[0])
            file = folder / f"{entry}.pth"  # of full shapes without their numbers
            torch.save({key: torch.zeros(()).expand(t.shape) for key, t in network.state_dict().items()}, file)
            linear = constructor in ("vit_b_16", "vit_l_16") and "LINEAR" in entry.name  # looks like V1: has to be told
            overrides = {"resize_size": "224,224", "interpolation": "bicubic"} if linear else {}
            yield Case(f"torchvision, {entry}", transform, file, overrides, {})


def transformers(folder: Path) -> Iterator[Case]:
    import transformers as hf
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()

    def square(side: int) -> dict[str, int]:
        return {"height": side, "width": side}

    dinov2 = {"size": {"shortest_edge": 256}, "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
    processors = (
        ("", 224, hf.ViTImageProcessorPil()),
        ("", 384, hf.ViTImageProcessorPil(size=square(384))),
        ("bicubic", 448, hf.ViTImageProcessorPil(size=square(448), resample=3)),
        ("", 224, hf.DeiTImageProcessorPil()),
        ("resized to 439", 384, hf.DeiTImageProcessorPil(size=square(439), crop_size=square(384))),
        ("as DINOv2's", 224, hf.BitImageProcessorPil(**dinov2)),
        ("resized to 518", 518, hf.BitImageProcessorPil(size={"shortest_edge": 518}, crop_size=square(518))),
        ("", 224, hf.BeitImageProcessorPil()),
        ("cropped", 224, hf.BeitImageProcessorPil(size=square(256), do_center_crop=True, crop_size=square(224))),
        ("", 224, hf.CLIPImageProcessorPil()),
        ("", 224, hf.SiglipImageProcessorPil()),
        ("", 224, hf.ViTImageProcessor()),
        ("", 224, hf.DINOv3ViTImageProcessor()),
        ("as DINOv2's", 224, hf.BitImageProcessor(**dinov2)),
    )
    for i, (note, side, processor) in enumerate(processors):
        sizes = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 12}
        network = hf.ViTForImageClassification(hf.ViTConfig(**sizes, image_size=side, patch_size=side))
        network.save_pretrained(folder / str(i))
        processor.save_pretrained(folder / str(i))
        kind = type(processor).__name__
        name = ", ".join(filter(None, ("transformers", kind, note)))
        exception = {} if kind.endswith("Pil") else FLOATS if kind.startswith("DINOv3") else WITH_TORCHVISION
        yield Case(name, partial(processed, processor), folder / str(i), {}, exception)


def processed(processor: Any, image: Image.Image) -> Tensor:
    pixels: Tensor = processor(image, return_tensors="pt")["pixel_values"][0]
    return pixels
