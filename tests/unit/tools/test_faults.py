"""lab/faults: that every fault can still be put into the code."""

import ast
from pathlib import Path

import pytest

from lab.faults.__main__ import seeded
from lab.faults.catalogue import FAULTS


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_has_one_place_and_changes_the_program(name):
    fault = FAULTS[name]
    text = Path(fault.file).read_text()
    assert ast.dump(ast.parse(seeded(fault, text))) != ast.dump(ast.parse(text))
