"""torchvision's five constructors, of their own width, heads and MLP, but two blocks deep, for every published size."""

import math
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from lab.parity.comparison import Row, difference, of_receipt, of_tokens, randomise, read_by
from model.checkpoints import load_checkpoint

SIZES = {"vit_b_16": (224, 384), "vit_b_32": (224,), "vit_l_16": (224, 512), "vit_l_32": (224,), "vit_h_14": (224, 518)}
# What a file of a depth of one's own cannot say; the logits of noise do not depend on it.
STATED = {"resize_mode": "squash", "crop": "none", "interpolation": "bilinear", "mean": "0,0,0", "std": "1,1,1"}


def rows() -> Iterator[Row]:
    for constructor, sides in SIZES.items():
        for side in sides:
            with tempfile.TemporaryDirectory() as folder:
                yield compare(constructor, side, Path(folder) / "checkpoint.pth")


def compare(constructor: str, side: int, file: Path) -> Row:
    from torchvision.models.vision_transformer import interpolate_embeddings

    theirs = shallow(constructor, side)
    randomise(theirs, std=math.sqrt(3 / theirs.hidden_dim))
    torch.save(theirs.state_dict(), file)
    larger = side + 3 * theirs.patch_size  # theirs are square
    theirs_resized = shallow(constructor, larger).eval()
    theirs_resized.load_state_dict(interpolate_embeddings(larger, theirs.patch_size, theirs.state_dict()))

    heads = theirs.encoder.layers[0].num_heads
    own, other = (side, side), (larger, larger)
    given = STATED | {"heads": str(heads)}
    loaded, resized = (
        load_checkpoint(file, overrides=given | {"image_size": str(size), "resize_size": str(size)})
        for size in (own, other)
    )
    rounding = 1e-5  # of sums this wide; in float64 the two sides differ by 1e-7, which is rounded in the file
    found = difference((own, other), (loaded.model, resized.model), (theirs, theirs_resized))
    tokens = of_tokens(loaded, own, partial(tokens_of, theirs))
    receipt = of_receipt(loaded, own, read_by([theirs.heads.head], theirs))
    name = f"{constructor} {side}/{theirs.patch_size}"
    return Row(name=name, rounding=rounding, tokens=tokens, receipt=receipt, **found)


def tokens_of(model: nn.Module, images: Tensor) -> tuple[Tensor, Tensor]:
    found: dict[str, Tensor] = {}
    encoder = model.get_submodule("encoder")
    for name, layer in (("last", encoder), ("first", encoder.get_submodule("layers")[0])):
        layer.register_forward_hook(lambda _, __, output, name=name: found.update({name: output}))
    model(images)
    return found["last"], found["first"]


def shallow(constructor: str, side: int) -> nn.Module:
    """Of the constructor's sizes, which are read from its network without the memory for it."""
    from torchvision import models

    with torch.device("meta"):
        whole = getattr(models, constructor)(image_size=side)
    sizes = {name: getattr(whole, name) for name in ("patch_size", "hidden_dim", "mlp_dim")}
    heads = whole.encoder.layers[0].num_heads
    return models.VisionTransformer(**sizes, image_size=side, num_layers=2, num_heads=heads, num_classes=7)
