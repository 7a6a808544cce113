"""model/checkpoints/families/timm_likeness.py: what a state dict without a name shows, and which networks it can be."""

import re

import pytest
import torch

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.families.timm_architectures import find
from model.checkpoints.families.timm_layers import slots
from model.checkpoints.families.timm_network import network
from model.checkpoints.load import describe_checkpoint
from model.vit import VisionTransformer
from tests.support.timm_files import toy


def bare(folder, name, *, classes=5, **changes):
    """A state dict of the real size, whose tensors take no room."""
    architecture, _ = find(name)
    (_, recipe), *_ = architecture.tags.values()
    config = network(architecture, image_size=tuple(recipe["input_size"][1:]), num_classes=classes)
    with torch.device("meta"):
        shapes = {key: tensor.shape for key, tensor in VisionTransformer(config).state_dict().items()}
    if "pos_embed" in shapes:
        _, rows, width = shapes["pos_embed"]
        shapes["pos_embed"] = torch.Size([1, rows + slots(architecture, config), width])
    file = folder / "bare.pth"
    torch.save({key: torch.zeros(()).expand(shape) for key, shape in shapes.items()}, file)
    return file


@pytest.mark.parametrize(
    "name",
    [
        *("vit_base_patch16_224", "vit_small_patch32_224", "vit_tiny_r_s16_p8_224"),
        *("eva02_base_patch14_448", "vit_small_plus_patch16_dinov3"),
    ],
)
def test_the_right_network_is_among_the_five_that_are_named(tmp_path, name):
    with pytest.raises(CheckpointError, match="the file does not say architecture") as error:
        describe_checkpoint(bare(tmp_path, name))
    fits = re.search(r"networks that fit: (.*?)( and \d+ more)?\. ", str(error.value))[1].split(", ")
    assert name in fits
    assert len(fits) <= 5
    assert f"--set architecture={fits[0]}" in str(error.value)


def test_sizes_that_no_network_has_are_part_of_the_example(tmp_path):
    torch.save(toy("vit_base_patch16_224", mlp_ratio=2)[1], tmp_path / "own.pth")
    with pytest.raises(CheckpointError, match=r"embed_dim=24 --set depth=2 --set num_heads=1 --set mlp_ratio=2.0$"):
        describe_checkpoint(tmp_path / "own.pth")
