"""export/fit/command.py: options that do not fit the method are refused before anything is read."""

import pytest
import torch

from export.command import main
from tests.support.altered import altered, with_more, without

DEMO = "model/demo/shapes.safetensors"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "pretrain"], "--method pretrain begins with --from-scratch VARIANT, or with a network like "),
        ([DEMO, "--method", "masked", "--from-scratch", "Ti/16"], "--method masked begins with --from-scratch VARI"),
        ([DEMO, "--from-scratch", "Ti/16"], "--method probe begins with a checkpoint: give a file"),
        (["--method", "masked", "--from-scratch", "Ti/16", "--set", "mean=0,0,0"], "--set: it is for facts of a check"),
        ([DEMO, "--method", "finetune", "--positions", "1-D"], "--positions: it is for a network from scratch; the "),
    ],
)
def test_an_option_that_does_not_fit_the_method_is_refused(tmp_path, arguments, message):
    with pytest.raises(SystemExit) as refusal:
        main(["fit", *arguments, "--images", str(tmp_path), "--out", str(tmp_path / "mine.safetensors")])
    assert str(refusal.value).startswith(f"not learned: {message}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"id2label": {"0": "a"}},
        {"tensors": without("classifier")},
        {"tensors": with_more({"classifier.weight": torch.zeros(5, 24)})},  # as files for fine-tuning have it
    ],
)
def test_nothing_is_asked_about_a_head_that_will_be_replaced(tmp_path, changes):
    """It comes as far as the images, of which there are none."""
    folder = altered("huggingface-vit", tmp_path, **changes)
    (tmp_path / "images").mkdir()
    with pytest.raises(SystemExit) as refusal:
        main(["fit", str(folder), "--images", str(tmp_path / "images"), "--out", str(tmp_path / "mine.safetensors")])
    assert str(refusal.value).startswith(f"not learned: {tmp_path / 'images'}")
