"""vit_serve/__main__.py: words that name no command."""

import sys

import pytest

from vit_serve.__main__ import main


def test_the_nearest_command_is_named(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["vit-serve", "srve"])
    with pytest.raises(SystemExit, match=r"^srve is not a command: is serve meant\?$"):
        main()
