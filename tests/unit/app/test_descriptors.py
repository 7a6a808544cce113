"""app/__main__.py: a process that was started with closed standard descriptors."""

import subprocess
import sys

import pytest

PROGRAM = """
import os, sys
from app.__main__ import open_standard_descriptors
open_standard_descriptors()
assert all(os.get_inheritable(number) for number in range(3))
print("out", flush=True)
print("error", file=sys.stderr, flush=True)
sys.exit(os.open(os.devnull, os.O_RDONLY))
"""


@pytest.mark.parametrize("closed", ["", "<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_descriptors_are_opened_on_nothing(closed):
    """So the next file has a number after them. Programs that it starts get them."""
    shell = ["sh", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, PROGRAM]
    ended = subprocess.run(shell, capture_output=True, text=True, check=False)
    assert ended.returncode >= 3
    assert ended.stdout == ("" if " >&-" in f" {closed}" else "out\n")
    assert ended.stderr == ("" if "2>&-" in closed else "error\n")
