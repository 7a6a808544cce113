"""export/progress.py: what a person sees while an export works."""

from export.progress import working
from tests.support.processes import eventually


def test_in_a_log_a_step_is_one_line(capsys):
    with working("tracing"):
        pass
    (line,) = capsys.readouterr().err.splitlines()
    assert line.split()[0] == "tracing"


def test_a_log_has_no_line_for_steps_that_do_not_stay(capsys):
    with working("starting", leave=False):
        pass
    assert capsys.readouterr().err == ""


def test_on_a_terminal_a_bar_moves_while_nothing_is_counted(monkeypatch, capsys):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    frames: set[str] = set()

    def moved() -> bool:
        frames.update(line for line in capsys.readouterr().err.splitlines() if "tracing" in line)
        return len(frames) > 3

    with working("tracing"):
        eventually(moved)
