"""tests/benchmarks/age.py: which tables are older than the code they measure."""

import pytest

from tests.benchmarks import age


@pytest.mark.parametrize(("log", "said"), [("c1\nc2", "serving (2), soak (2)"), ("", "none")])
def test_tables_are_named_with_the_changes_since(tmp_path, monkeypatch, capsys, log, said):
    for part, name in (("benchmarks", "serving"), ("load", "soak"), ("study", "study-growth")):
        (tmp_path / "tests" / part).mkdir(parents=True)
        (tmp_path / "tests" / part / f"{name}.json").write_text('{"measured": {"commit": "c0"}, "rows": []}')
    monkeypatch.setattr(age, "ROOT", tmp_path)
    monkeypatch.setattr(age, "git", lambda *arguments: log)
    age.main()
    assert capsys.readouterr().out == f"Tables older than the code (changes since): {said}\n"
