"""vit_serve/__main__.py: words that name no command."""

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
