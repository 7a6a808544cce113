"""Reading a control group of either version, and the limit that is shipped."""

from pathlib import Path

import pytest

from tests.load.memory_limit import Group, shipped_limit

VERSION_1 = {"memory.stat": "cache 4096\nrss 8192\nmapped_file 0\n", "memory.oom_control": "under_oom 0\noom_kill 2\n"}
VERSION_2 = {"memory.stat": "anon 8192\nfile 4096\n", "memory.events": "low 0\noom 2\noom_kill 2\n"}


@pytest.mark.parametrize("files", [VERSION_1, VERSION_2])
def test_a_group_counts_what_is_allocated_and_what_was_killed(tmp_path: Path, files: dict[str, str]):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    group = Group(tmp_path.parent, tmp_path)
    assert group.allocated == 8192
    assert group.killed == 2


def test_the_limit_is_that_of_the_deployment():
    assert shipped_limit() == 2 * 2**30
