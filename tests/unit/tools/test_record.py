"""tests/benchmarks/record.py: what a benchmark's JSON says besides its rows."""

import subprocess

from tests.benchmarks import record

ROWS = [{"server": "vit-serve", "images/s": 18.4}]


def test_a_record_has_the_rows_and_the_state_of_the_code(tmp_path):
    record.write_record(tmp_path / "servers.json", ROWS, {"left out": {}})
    written = record.read_record(tmp_path / "servers.json")
    assert written.rows == ROWS
    assert {"commit", "uncommitted", "date", "processor", "cores", "versions", "left out"} == written.head.keys()


def test_code_that_is_not_committed_is_named_and_tables_are_not(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "ROOT", tmp_path)
    for name in ("app/main.py", "tests/load/soak.json", "docs/benchmarks.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    assert record.uncommitted() == ["app/main.py"]
