"""model/checkpoints/families/jeonsworld.py: DeiT's golden network under the names of its models/modeling.py."""

from dataclasses import replace

import pytest
import torch

from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.load import describe_checkpoint
from tests.support.altered import GOLDEN, stated
from tests.support.runs import same_weights

DEIT = GOLDEN / "deit/checkpoint.pth"
EMBEDDINGS = "transformer.embeddings."
NAMES = {  # one after the other
    "patch_embed.proj.": f"{EMBEDDINGS}patch_embeddings.",
    "pos_embed": f"{EMBEDDINGS}position_embeddings",
    "cls_token": f"{EMBEDDINGS}cls_token",
    "norm.": "transformer.encoder.encoder_norm.",
    "blocks.": "transformer.encoder.layer.",
    ".norm1.": ".attention_norm.",
    ".norm2.": ".ffn_norm.",
    ".mlp.": ".ffn.",
    ".attn.proj.": ".attn.out.",
}


def write(folder, more=()):
    """As train.py saves it: torch.save(model.state_dict(), "NAME_checkpoint.bin")."""
    state = {}
    for name, tensor in torch.load(DEIT, weights_only=True)["model"].items():
        for old, new in NAMES.items():
            name = name.replace(old, new)
        for part, rows in zip(("query", "key", "value"), tensor.chunk(3) if "qkv" in name else [tensor], strict=False):
            state[name.replace("qkv", part)] = rows.clone()
    torch.save(state | dict(more), folder / "mine_checkpoint.bin")
    return folder / "mine_checkpoint.bin"


def test_the_network_is_deits_and_the_pixels_are_its_own(tmp_path):
    """Both have LayerNorms with an eps of 1e-6 and the exact GELU. Its data_utils.py resizes to a square."""
    loaded = load_checkpoint(write(tmp_path), overrides={"heads": "3"})
    deit = load_checkpoint(DEIT, overrides=stated("deit"))
    assert same_weights(loaded.model, deit.model)
    assert loaded.config == replace(deit.config, position_resize="bilinear_corners")
    recipe = loaded.preprocessing
    assert (recipe.resize_mode, recipe.resize_size, recipe.crop) == ("squash", loaded.config.image_size, "none")
    assert (recipe.interpolation, recipe.mean, recipe.std) == ("bilinear", (0.5,) * 3, (0.5,) * 3)


def test_a_published_size_has_its_number_of_heads(tmp_path):
    wide = {f"{EMBEDDINGS}patch_embeddings.weight": torch.zeros(768, 3, 4, 4)}
    of_twelve = {"transformer.encoder.layer.11.ffn_norm.bias": torch.zeros(768)}
    assert describe_checkpoint(write(tmp_path, wide | of_twelve)).config.heads == 12
    with pytest.raises(CheckpointError, match="does not say heads"):
        load_checkpoint(write(tmp_path))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (f"{EMBEDDINGS}hybrid_model.root.conv.weight", "an R50 hybrid of jeonsworld/ViT-pytorch"),
        ("transformer.encoder.part_layer.attn.query.weight", "unused: .*part_layer"),  # TransFG's
    ],
)
def test_what_is_built_on_it_is_refused(tmp_path, name, message):
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(write(tmp_path, {name: torch.zeros(1)}), overrides={"heads": "3"})
