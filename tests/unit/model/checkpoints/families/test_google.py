"""model/checkpoints/families/google.py: what the golden files cannot show."""

from pathlib import Path

import numpy as np
import pytest

from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import CheckpointError

GOLDEN = Path("tests/golden/checkpoints")


def add(**arrays):
    return lambda file: file.update(arrays)


def drop(pattern):
    return lambda file: [file.pop(name) for name in list(file) if pattern in name]


@pytest.mark.parametrize(
    ("case", "change", "message"),
    [
        ("google-siglip", drop("head/"), r"no params/img/head/kernel: it is an image tower"),
        ("google-siglip", add(**{"params/txt/Embed_0/embedding": np.zeros(3)}), r"has a text tower"),
        ("google-vit-jax", drop("encoder_norm/bias"), r"missing: norm\.bias"),
        ("google-vit-jax", drop("MultiHeadDotProductAttention_1/query"), r"has no blocks\.0\.attn\.q\.kernel"),
        ("google-vit-jax", add(**{"embedding/kernel": np.zeros((8, 4, 3, 32), np.float32)}), r"8 x 4 pixels"),
        ("google-big-vision-sincos", add(), r"image_size: give it, as in this example: --set image_size=224,224$"),
    ],
)
def test_refusals_say_why(tmp_path, case, change, message):
    with np.load(GOLDEN / case / "checkpoint.npz", allow_pickle=True) as archive:
        arrays = dict(archive)
    change(arrays)
    np.savez(tmp_path / "file.npz", **arrays)
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(tmp_path / "file.npz")
