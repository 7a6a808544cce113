"""model/checkpoints/families/torchvision.py: what the golden files cannot show."""

import json

import pytest
import torch

from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.load import describe_checkpoint
from tests.support.altered import GOLDEN, renamed, with_more

CASE = GOLDEN / "torchvision-vit"
STATED = json.loads((CASE / "overrides.json").read_text())


@pytest.mark.parametrize(
    ("width", "depth", "patch", "side", "heads", "resize", "interpolation", "entry"),
    [
        (768, 12, 16, 224, 12, 256, "bilinear", "ViT_B_16_Weights.IMAGENET1K_V1"),
        (768, 12, 16, 384, 12, 384, "bicubic", "ViT_B_16_Weights.IMAGENET1K_SWAG_E2E_V1"),
        (1024, 24, 16, 224, 16, 242, "bilinear", "ViT_L_16_Weights.IMAGENET1K_V1"),
        (1280, 32, 14, 518, 16, 518, "bicubic", "ViT_H_14_Weights.IMAGENET1K_SWAG_E2E_V1"),
    ],
)
def test_published_weights_are_known_by_their_sizes(
    tmp_path, width, depth, patch, side, heads, resize, interpolation, entry
):
    shapes = {
        "class_token": (1, 1, width),
        "conv_proj.weight": (width, 3, patch, patch),
        "encoder.pos_embedding": (1, (side // patch) ** 2 + 1, width),
        **{f"encoder.layers.encoder_layer_{i}.mlp.3.weight": (width, 4 * width) for i in range(depth)},
        "heads.head.weight": (1000, width),
    }
    torch.save({name: torch.zeros(()).expand(shape) for name, shape in shapes.items()}, tmp_path / "vit.pth")
    description = describe_checkpoint(tmp_path / "vit.pth")
    recipe = description.preprocessing
    assert (description.config.heads, description.config.mlp_dim) == (heads, 4 * width)
    assert (recipe.size, recipe.resize_size) == ((side, side), (resize, resize))
    assert (recipe.resize_mode, recipe.crop, recipe.interpolation) == ("shortest", "center", interpolation)
    assert recipe.crop_rounding == "half_even"
    assert description.origins["mean"] == f"torchvision's {entry}"


@pytest.fixture
def altered(tmp_path):
    def alter(change):
        state = change(torch.load(CASE / "checkpoint.pth"))
        torch.save(state, tmp_path / "altered.pth")
        return tmp_path / "altered.pth"

    return alter


@pytest.mark.parametrize("name", ["heads", "heads.0", "heads.head.0"])
def test_heads_of_fine_tuning(altered, name):
    tuned, original = (
        load_checkpoint(path, overrides=STATED)
        for path in (altered(renamed("heads.head", name)), CASE / "checkpoint.pth")
    )
    assert torch.equal(tuned.model.head.weight, original.model.head.weight)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (renamed("heads.head", "heads.1"), r"not a single linear layer: the file has heads\.1\.weight, heads\.1\.bias"),
        (renamed("heads.head", "fc"), "the file has no heads at all"),
        (with_more(conv_proj__conv_last__weight=torch.zeros(1)), "a stem of convolutions"),
    ],
)
def test_the_error_names_unsupported_parts(altered, change, message):
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(altered(change), overrides=STATED)


@pytest.mark.parametrize(
    ("without", "message"),
    [
        ("heads", "the file does not say heads: give it, as in this example: --set heads=1"),
        ("mean", "20 x 20 pixels.* --set mean=0.485"),
    ],
)
def test_facts_that_the_file_lacks_must_be_given(without, message):
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(CASE / "checkpoint.pth", overrides={k: v for k, v in STATED.items() if k != without})
