"""model/checkpoints/families/google.py: what the golden files cannot show."""

from pathlib import Path

import numpy as np
import pytest
import torch

from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.load import describe_checkpoint

GOLDEN = Path("tests/golden/checkpoints")
TABLE = "Transformer/posembed_input/pos_embedding"


@pytest.fixture
def altered(tmp_path):
    """Writes a golden file again with a function's changes."""

    def rewrite(case, change=lambda arrays: None):
        with np.load(GOLDEN / case / "checkpoint.npz", allow_pickle=True) as archive:
            arrays = dict(archive)
        change(arrays)
        np.savez(tmp_path / "file.npz", **arrays)
        return tmp_path / "file.npz"

    return rewrite


def add(**arrays):
    return lambda file: file.update(arrays)


def drop(pattern):
    return lambda file: [file.pop(name) for name in list(file) if pattern in name]


@pytest.mark.parametrize(
    ("case", "family"),
    [
        ("google-vit-jax", "vit_jax"),
        ("google-vit-jax-gap", "vit_jax"),
        ("google-hybrid", "vit_jax"),
        ("google-big-vision-token", "big_vision"),
        ("google-big-vision-old", "big_vision"),
        ("google-siglip", "big_vision"),
    ],
)
def test_the_two_libraries_are_distinguished(case, family):
    description = describe_checkpoint(GOLDEN / case / "checkpoint.npz")
    assert (description.family, description.config.heads, description.score) == (family, 4, "softmax")


@pytest.mark.parametrize(
    ("case", "change", "message"),
    [
        ("google-siglip", drop("head/"), r"no params/img/head/kernel: it is an image tower"),
        ("google-siglip", add(**{"params/txt/Embed_0/embedding": np.zeros(3)}), r"has a text tower"),
        ("google-vit-jax", drop("encoder_norm/bias"), r"has no Transformer/encoder_norm/bias"),
        ("google-vit-jax", drop("MultiHeadDotProductAttention_1/query"), r"MultiHeadDotProductAttention_1/query"),
        ("google-vit-jax", add(surplus=np.zeros(3)), r"does not use all tensors: surplus"),
        ("google-vit-jax", add(**{"head/kernel": np.zeros((20, 6), np.float32)}), r"head is all zeros"),
        (
            "google-vit-jax",
            add(**{TABLE: np.zeros((1, 19, 32), np.float32)}),
            "19 positions does not fit a square grid",
        ),
        ("google-vit-jax", add(**{"embedding/kernel": np.zeros((8, 4, 3, 32), np.float32)}), r"8 x 4 pixels"),
    ],
)
def test_refusals_say_why(altered, case, change, message):
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(altered(case, change))


def test_without_a_table_the_size_must_be_given(altered):
    with pytest.raises(CheckpointError, match=r"image_size: give it, as in this example: --set image_size=224,224$"):
        load_checkpoint(altered("google-big-vision-sincos"))


def test_a_training_file_of_imagenet_21k_scores_each_label_by_itself(altered):
    classes = add(
        **{"head/kernel": np.ones((20, 21843), np.float32), "head/bias": np.zeros(21843, np.float32)},
    )
    description = describe_checkpoint(altered("google-vit-jax", classes))
    assert description.score == "sigmoid"
    assert "sigmoid_xent" in description.origins["score"]
    assert description.labels_from == "ImageNet-21k, by the number of classes"


def test_facts_set_by_hand_win_and_are_named(altered):
    overrides = {"mean": "0.1,0.2,0.3", "resize_mode": "shortest", "crop": "center"}
    description = describe_checkpoint(altered("google-vit-jax"), overrides=overrides)
    assert description.preprocessing.mean == (0.1, 0.2, 0.3)
    assert description.preprocessing.crop == "center"
    assert description.origins["mean"] == "set by hand"
    assert description.origins["std"].startswith("vit_jax")
    assert description.origins["image_size"] == "the table of positions"


def test_positions_for_another_size_keep_their_corners(altered):
    """scipy.ndimage.zoom of order 1: rows and columns of the corners stay, the middle is between."""

    line = np.arange(16, dtype=np.float32).reshape(1, 16, 1).repeat(32, axis=2)
    path = altered("google-vit-jax-gap", add(**{f"params/{TABLE}": line}))
    checkpoint = load_checkpoint(path, overrides={"image_size": "56,56"})
    assert checkpoint.config.image_size == checkpoint.preprocessing.size == (56, 56)
    table = checkpoint.model.pos_embed.detach().view(7, 7, 32)[..., 0]
    assert torch.allclose(table[0, ::2], torch.tensor([0.0, 1.0, 2.0, 3.0]), atol=1e-5)
    assert torch.allclose(table[1, 1], torch.tensor(2.5), atol=1e-5)
