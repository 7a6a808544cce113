"""export/fit/workspace.py: what stays after success, after an error and after a kill, and who may use it."""

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


def test_it_is_deleted_at_the_end(tmp_path):
    with workspace(tmp_path / "a" / "work") as folder:
        (folder / "run.pt").write_text("learned")
    assert not (tmp_path / "a" / "work").exists()


@pytest.mark.parametrize(("names", "left"), [(["train.pixels", "run.pt"], ["run.pt"]), (["train.pixels"], None)])
def test_after_an_error_snapshots_stay(tmp_path, names, left):
    with pytest.raises(KeyboardInterrupt), workspace(tmp_path / "work") as folder:  # noqa: PT012
        for name in names:
            (folder / name).write_text("")
        raise KeyboardInterrupt
    assert left == ([file.name for file in folder.iterdir()] if folder.exists() else None)


def test_one_run_at_a_time_and_the_next_finds_the_files_of_a_killed_one(tmp_path):
    with program(HOLD, tmp_path / "work") as holder:
        assert holder.stdout.readline() == "ready\n"
        with pytest.raises(ValueError, match="another run uses "), workspace(tmp_path / "work"):
            pytest.fail("two runs in one folder")
        assert (tmp_path / "work" / "run.pt").exists()
    with workspace(tmp_path / "work") as folder:
        assert (folder / "run.pt").read_text() == "learned"
