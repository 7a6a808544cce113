"""client/vit_serve_client/progress.py: a terminal has one line of it, and sentences stand above that."""

import sys
from io import StringIO

import pytest

from vit_serve_client import progress
from vit_serve_client.progress import CLEARED, Progress, tell


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def seconds(monkeypatch):
    """The clock; a test sets what it shows."""
    shown = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: shown[-1])
    return shown


def used(seconds: list[float]) -> None:
    with Progress(1_000, done=10) as bar:
        for number in range(20):
            seconds.append(seconds[-1] + 0.0625)
            bar.step(refusals=2 * (number == 19))
        tell("a.png: this is no image")


def test_a_terminal_has_one_line_which_is_drawn_now_and_then(seconds, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    used(seconds)
    _, *drawn, told, last = sys.stderr.getvalue().split(CLEARED)
    assert drawn[0] == "11 of 1,000 images, 16.0 per second, 0:01:02 left"
    assert len(drawn) == 10
    assert (told, last) == (
        "a.png: this is no image\n",
        "30 of 1,000 images, 16.0 per second, 0:01:01 left, 2 refusals\n",
    )


def test_a_file_gets_sentences_alone(seconds, monkeypatch):
    monkeypatch.setattr(sys, "stderr", StringIO())
    used(seconds)
    assert sys.stderr.getvalue() == "a.png: this is no image\n"
