"""model/progress.py: what a log without a terminal gets of a long run."""

import pytest

from model import progress
from model.progress import steps


@pytest.mark.parametrize(("apart_s", "lines"), [(0.0, 3), (3600.0, 0)])
def test_a_log_has_lines_of_a_long_run_and_its_end(apart_s, lines, monkeypatch, capsys):
    monkeypatch.setattr(progress, "LINES_S", apart_s)
    with steps("trying rate 0.0002 (1 of at most 3)", done=1_000, of=1_300) as advance:
        for step in (1_100, 1_200, 1_300):
            advance(step, 0.25)
    said = capsys.readouterr().err
    assert said.count("trying rate 0.0002 (1 of at most 3): step 1,") == lines
    assert "trying rate 0.0002 (1 of at most 3), loss 0.250" in said
    assert "100%" in said
    assert "\r" not in said


def test_a_run_that_fails_leaves_no_bar_behind(capsys):
    with pytest.raises(ValueError, match="no finite number"), steps("fine-tuning", done=0, of=2):
        raise ValueError("no finite number")
    with steps("fine-tuning", done=0, of=2) as advance:
        advance(2, 1.0)
    assert "100%" in capsys.readouterr().err
