"""export/fit/workspace.py: what stays after a kill, and who may use it. test_run.py has the ends without a kill."""

import pytest

from export.fit.workspace import workspace
from tests.support.processes import program

HOLD = """
import sys, time
from pathlib import Path
from export.fit.workspace import workspace
with workspace(Path(sys.argv[1])) as folder:
    (folder / "run.pt").write_text("learned")
    print("ready", flush=True)
    time.sleep(60)
"""


def test_one_run_at_a_time_and_the_next_finds_the_files_of_a_killed_one(tmp_path):
    with program(HOLD, tmp_path / "work") as holder:
        assert holder.stdout.readline() == "ready\n"
        with pytest.raises(ValueError, match="another run uses "), workspace(tmp_path / "work"):
            pytest.fail("two runs in one folder")
        assert (tmp_path / "work" / "run.pt").exists()
    with workspace(tmp_path / "work") as folder:
        assert (folder / "run.pt").read_text() == "learned"
