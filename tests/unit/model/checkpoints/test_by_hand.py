"""model/checkpoints/by_hand.py: the list of facts is that of the loaders, and `--help` has it."""

import ast
from pathlib import Path

import pytest

from export.arguments import FactsParser
from model.checkpoints.by_hand import FACTS
from model.checkpoints.recipe import FACTS as OF_PIXELS


def test_the_list_has_every_fact_that_a_loader_asks_for():
    asked = {*OF_PIXELS, "weights"}
    for path in Path("model/checkpoints").rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            match call:
                case ast.Call(ast.Attribute(attr="resolve"), [ast.Constant(str(name)), *_]):
                    asked.add(name)
                case ast.Call(ast.Attribute(attr="need"), [ast.Dict(keys), *_]):
                    asked |= {key.value for key in keys if isinstance(key, ast.Constant)}
    assert asked == FACTS.keys()


def test_help_has_the_list(capsys):
    with pytest.raises(SystemExit):
        FactsParser().parse_args(["--help"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[-len(FACTS) :]] == [*FACTS]
