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
    program = (lambda source: ast.dump(ast.parse(source))) if fault.file.endswith(".py") else str
    assert program(seeded(fault, text)) != program(text)
