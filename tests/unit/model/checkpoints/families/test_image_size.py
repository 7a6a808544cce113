"""Another image size: every family interpolates positions as its library does, and crops the same share.

test_positions.py has the formulas.
"""

from pathlib import Path

import pytest
import torch

from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import CheckpointError
from model.positions import resize
from tests.golden.test_checkpoints import FOLDER, load, overrides_of, path_of
from tests.support.altered import GOLDEN, altered, stated, with_more
from tests.support.runs import same_weights

OF_LUCIDRAINS = "vit-pytorch-1.26.11-cls"

CASES = {
    FOLDER / "deit": "bicubic",
    FOLDER / "deit-3": "bicubic",
    FOLDER / "dino-mean-patch": "bicubic_offset",
    FOLDER / "google-vit-jax-gap": "bilinear_corners",
    FOLDER / "huggingface-beit": "bilinear",
    FOLDER / "huggingface-siglip": "bicubic",
    FOLDER / "huggingface-vit": "bicubic",
    FOLDER / "mae": "bicubic",
    FOLDER / "openclip-quickgelu": "bicubic_antialias",
    FOLDER / "timm-plain": "bicubic_antialias",
    FOLDER / "torchvision-vit": "bicubic_corners",
    Path("model/demo/shapes.safetensors"): "bicubic_antialias",
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_positions_are_interpolated(case):
    own = load(case)
    side = (own.config.grid[0] + 1) * own.config.patch_size
    size = (side, side - own.config.patch_size)
    chosen = load_checkpoint(path_of(case), overrides={**overrides_of(case), "image_size": f"{size[0]},{size[1]}"})
    assert chosen.config.position_resize == CASES[case]
    assert chosen.config.image_size == chosen.preprocessing.size == size
    if "resize_size" not in overrides_of(case):
        assert chosen.preprocessing == own.preprocessing.resized(size)
    assert same_weights(chosen.model, resize(own.model, size))


@pytest.mark.parametrize(
    ("positions", "grid"),
    [(16, (4, 4)), (16, (2, 8)), (6, (2, 3)), (16, (4, 2)), (16, (3, 4))],  # the last two in a table for a square
)
def test_an_image_takes_the_first_positions_of_the_table(tmp_path, positions, grid):
    """vit.py: x += pos_embedding[:, :(n + 1)]. The README wants a table for the longer side of rectangles."""
    table = torch.randn(1, positions + 1, 24)
    folder = altered(OF_LUCIDRAINS, tmp_path, tensors=with_more({"pos_embedding": table}))
    size = f"{4 * grid[0]},{4 * grid[1]}"  # in patches of 4 pixels
    checkpoint = load_checkpoint(folder, overrides=stated(OF_LUCIDRAINS) | {"image_size": size})
    assert checkpoint.config.grid == grid
    patches = grid[0] * grid[1]
    token = torch.load(GOLDEN / OF_LUCIDRAINS / "checkpoint.pt", weights_only=True)["cls_token"]
    torch.testing.assert_close(checkpoint.model.pos_embed.flatten(0, -2), table[0, 1 : 1 + patches])
    torch.testing.assert_close(checkpoint.model.cls_token.flatten(), token.flatten() + table[0, 0])


def test_a_table_that_is_for_no_square_needs_its_size(tmp_path):
    folder = altered(OF_LUCIDRAINS, tmp_path, tensors=with_more({"pos_embedding": torch.randn(1, 7, 24)}))
    with pytest.raises(CheckpointError, match="7 positions does not fit a square"):
        load_checkpoint(folder, overrides=stated(OF_LUCIDRAINS))
