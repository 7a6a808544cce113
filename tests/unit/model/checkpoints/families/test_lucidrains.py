"""model/checkpoints/families/lucidrains.py: what the golden files cannot show."""

from pathlib import Path

import pytest
import torch

from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.load import describe_checkpoint

GOLDEN = Path("tests/golden/checkpoints")
STATED = {"heads": "3", "mean": "0.5,0.5,0.5", "std": "0.5,0.5,0.5"}


def file(version, name):
    return GOLDEN / f"vit-pytorch-{version}-{name}" / "checkpoint.pt"


@pytest.fixture
def altered(tmp_path):
    """Writes a golden file again with a function's changes."""

    def rewrite(change):
        state = torch.load(file("1.26.11", "cls"), weights_only=True)
        change(state)
        torch.save(state, tmp_path / "file.pt")
        return tmp_path / "file.pt"

    return rewrite


def test_one_error_names_all_facts_that_the_file_lacks():
    with pytest.raises(CheckpointError) as refusal:
        load_checkpoint(file("1.9.2", "mean"))
    assert str(refusal.value) == (
        "the file does not say heads, mean, std: give it, as in this example: --set heads=1 --set mean=0.5,0.5,0.5"
        " --set std=0.5,0.5,0.5"
    )
    with pytest.raises(CheckpointError, match=r"does not say image_size: "):
        load_checkpoint(file("1.26.11", "simple"), overrides=STATED)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.update(surplus=torch.zeros(1)), "does not use all tensors: surplus"),
        (lambda s: s.pop("transformer.layers.1.1.net.4.bias"), r"missing: blocks\.1\.mlp\.fc2\.bias"),
        (lambda s: [s.pop(f"mlp_head.{kind}") for kind in ("weight", "bias")], "backbone, not a classifier"),
        (lambda s: s.update(pos_embedding=torch.zeros(19, 24)), "19 positions does not fit a square grid"),
        (lambda s: s.update({"to_patch_embedding.2.weight": torch.zeros(24, 16)}), "not a square of RGB pixels"),
    ],
)
def test_refusals_say_why(altered, change, message):
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(altered(change), overrides=STATED)


def test_a_pool_that_vit_pytorch_does_not_know():
    with pytest.raises(CheckpointError, match="vit-pytorch has cls and mean"):
        load_checkpoint(file("1.9.2", "mean"), overrides={**STATED, "pool": "max"})


def test_a_class_token_of_no_rows_means_the_mean():
    description = describe_checkpoint(file("1.26.11", "mean"), overrides=STATED)
    assert (description.config.class_token, description.config.pool) == (False, "mean_all")
    assert describe_checkpoint(file("1.9.2", "mean"), overrides=STATED).config.pool == "cls"


def test_heads_that_do_not_divide_the_width_are_refused():
    with pytest.raises((CheckpointError, ValueError), match="not a multiple of heads 5"):
        load_checkpoint(file("1.9.2", "mean"), overrides={**STATED, "heads": "5"})
