"""vit_serve/__main__.py: its words and flags, and the client of a clone."""

import subprocess
import sys

import pytest

from vit_serve.__main__ import main


def test_the_nearest_command_is_named(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["vit-serve", "srve"])
    with pytest.raises(SystemExit, match=r"^srve is not a command: is serve meant\?$"):
        main()


def test_a_wrong_flag_is_refused_before_an_export(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["vit-serve", "serve", "a.pth", "--prot", "9000"])
    monkeypatch.setattr("vit_serve.exported.bundle_of", None)
    with pytest.raises(SystemExit):
        main()
    assert "unrecognized arguments: --prot" in capsys.readouterr().err


def test_a_clone_has_the_client():
    command = [sys.executable, "-m", "vit_serve", "client", "--help"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.startswith(
        "usage: vit-serve client"
    )
