"""export/fit/command.py: options that do not fit the method are refused before anything is read."""

import pytest

from export.command import main

DEMO = "model/demo/shapes.safetensors"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([DEMO, "--method", "pretrain"], "--method pretrain begins with --from-scratch VARIANT, and with no "),
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
