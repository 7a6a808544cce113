"""tests/benchmarks/record.py: which code a benchmark measured."""

import subprocess

from tests.benchmarks import record


def test_code_that_is_not_committed_is_named_and_tables_are_not(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "ROOT", tmp_path)
    for name in ("app/main.py", "tests/load/soak.json", "docs/benchmarks.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    assert record.uncommitted() == ["app/main.py"]
