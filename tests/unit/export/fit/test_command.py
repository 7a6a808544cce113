"""export/fit/command.py: options that would have no effect are refused before anything is read."""

import pytest

from export.command import main

DEMO = "model/demo/shapes.safetensors"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "masked", "--from-scratch", "Ti/16", "--set", "mean=0,0,0"], "--set: it is for facts of a check"),
        ([DEMO, "--method", "finetune", "--positions", "1-D"], "--positions: it is for a network from scratch; the "),
    ],
)
def test_an_option_without_effect_is_refused(tmp_path, arguments, message):
    with pytest.raises(SystemExit) as refusal:
        main(["fit", *arguments, "--images", str(tmp_path), "--out", str(tmp_path / "mine.safetensors")])
    assert str(refusal.value).startswith(f"not learned: {message}")
