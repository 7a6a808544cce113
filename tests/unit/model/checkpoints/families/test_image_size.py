"""Another image size: every family interpolates positions as its library does, and crops the same share.

test_positions.py has the formulas.
"""

from pathlib import Path

import pytest

from model.checkpoints import load_checkpoint
from model.positions import resize
from tests.golden.test_checkpoints import FOLDER, load, overrides_of, path_of
from tests.support.runs import same_weights

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
