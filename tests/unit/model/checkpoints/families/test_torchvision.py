"""model/checkpoints/families/torchvision.py: what the golden files cannot show."""

import argparse

import pytest
import torch

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.load import describe_checkpoint
from tests.support.altered import GOLDEN


def published(width, depth, patch, side):
    """The shapes of published weights. The tensors take no room."""
    shapes = {
        "class_token": (1, 1, width),
        "conv_proj.weight": (width, 3, patch, patch),
        "encoder.pos_embedding": (1, (side // patch) ** 2 + 1, width),
        **{f"encoder.layers.encoder_layer_{i}.mlp.3.weight": (width, 4 * width) for i in range(depth)},
        "heads.head.weight": (1000, width),
    }
    return {name: torch.zeros(()).expand(shape) for name, shape in shapes.items()}


@pytest.mark.parametrize(
    ("width", "depth", "patch", "side", "heads", "resize", "interpolation", "entry"),
    [
        (768, 12, 16, 224, 12, 256, "bilinear", "ViT_B_16_Weights.IMAGENET1K_V1"),
        (768, 12, 16, 384, 12, 384, "bicubic", "ViT_B_16_Weights.IMAGENET1K_SWAG_E2E_V1"),
        (1024, 24, 16, 224, 16, 242, "bilinear", "ViT_L_16_Weights.IMAGENET1K_V1"),
        (1280, 32, 14, 518, 16, 518, "bicubic", "ViT_H_14_Weights.IMAGENET1K_SWAG_E2E_V1"),
    ],
)
def test_published_weights_are_known_by_sizes(saved, width, depth, patch, side, heads, resize, interpolation, entry):
    description = describe_checkpoint(saved(published(width, depth, patch, side)))
    recipe = description.preprocessing
    assert (description.config.heads, description.config.mlp_dim) == (heads, 4 * width)
    assert (recipe.size, recipe.resize_size) == ((side, side), (resize, resize))
    assert (recipe.resize_mode, recipe.crop, recipe.interpolation) == ("shortest", "center", interpolation)
    assert description.origins["mean"].where == f"torchvision's {entry}"


def test_half_a_command_line_goes_before_what_is_published_too(saved):
    state = published(768, 12, 16, 224)
    description = describe_checkpoint(saved({"model": state, "args": argparse.Namespace(interpolation="bicubic")}))
    assert (description.preprocessing.interpolation, description.preprocessing.resize_size) == ("bicubic", (256, 256))
    assert description.origins["resize_size"].where == "torchvision's ViT_B_16_Weights.IMAGENET1K_V1"
    file = saved({"model": state, "args": argparse.Namespace(val_crop_size=208)})
    with pytest.raises(CheckpointError, match=r"says image_size 224,224, and args\.val_crop_size of the file 208,208"):
        describe_checkpoint(file)


def test_the_command_line_in_the_file_comes_first(saved):
    """references/classification/train.py saves it."""
    arguments = argparse.Namespace(val_resize_size=23, interpolation="bicubic")
    state = torch.load(GOLDEN / "torchvision-vit/checkpoint.pth", weights_only=True)
    file = saved({"model": state, "args": arguments})
    description = describe_checkpoint(file, overrides={"heads": "3"})
    assert (description.preprocessing.resize_size, description.preprocessing.interpolation) == ((23, 23), "bicubic")
    assert description.origins["resize_size"].where == "args.val_resize_size of the file"
    assert "--set resize_size=" not in description.advice
    smaller = describe_checkpoint(file, overrides={"heads": "3", "image_size": "12,12"})
    assert smaller.preprocessing.resize_size == (14, 14)  # the crop cuts off the same share of 20 pixels
