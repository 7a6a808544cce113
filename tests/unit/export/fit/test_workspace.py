"""export/fit/workspace.py: what stays after a kill, and who may use it. test_run.py has the ends without a kill."""

from pathlib import Path

import pytest

from export.fit.workspace import workspace
from tests.support.processes import program


@pytest.mark.parametrize("make", [Path.touch, Path.mkdir])
def test_a_folder_with_a_persons_own_files_is_refused(tmp_path, make):
    make(tmp_path / "cats")
    with pytest.raises(ValueError, match="has cats, and a run deletes that folder"), workspace(tmp_path):
        pytest.fail("the end would delete it")
    assert (tmp_path / "cats").exists()


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
