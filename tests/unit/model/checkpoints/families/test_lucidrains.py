"""model/checkpoints/families/lucidrains.py: what the golden files cannot show."""

from pathlib import Path

import pytest
import torch

from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.load import describe_checkpoint

GOLDEN = Path("tests/golden/checkpoints")
STATED = {"heads": "3", "mean": "0.5,0.5,0.5", "std": "0.5,0.5,0.5"}


def file(case):
    return GOLDEN / f"vit-pytorch-{case}" / "checkpoint.pt"


@pytest.mark.parametrize(
    ("case", "change", "stated", "message"),
    [
        (
            "1.26.11-cls",
            lambda s: [s.pop(f"mlp_head.{kind}") for kind in ("weight", "bias")],
            STATED,
            "a backbone, not",
        ),
        ("1.26.11-cls", lambda s: s.update({"to_patch_embedding.2.weight": torch.zeros(24, 16)}), STATED, "RGB pixels"),
        ("1.26.11-simple", dict, STATED, "does not say image_size: "),
        (
            "1.9.2-mean",
            dict,
            {},
            "does not say heads, mean, std: give it, as in this example: --set heads=1 --set mean",
        ),
        ("1.9.2-mean", dict, STATED | {"pool": "max"}, "vit-pytorch has cls and mean"),
    ],
)
def test_refusals_say_why(tmp_path, case, change, stated, message):
    state = torch.load(file(case), weights_only=True)
    change(state)
    torch.save(state, tmp_path / "file.pt")
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(tmp_path / "file.pt", overrides=stated)


def test_a_class_token_of_no_rows_means_the_mean():
    description = describe_checkpoint(file("1.26.11-mean"), overrides=STATED)
    assert (description.config.class_token, description.config.pool) == (False, "mean_all")
    assert describe_checkpoint(file("1.9.2-mean"), overrides=STATED).config.pool == "cls"
