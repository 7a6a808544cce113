"""app/images/compiler.py: a library is made once, whole, and where it cannot be, nothing else fails."""

import sys

import pytest

from app.images import compiler

WRITES = "import sys; open(sys.argv[sys.argv.index('-o') + 1], 'w').write('made')"


@pytest.fixture(autouse=True)
def source(tmp_path, monkeypatch):
    """In a folder of its own, and compiled by what only writes a file."""
    (tmp_path / "resize.c").write_text("first")
    monkeypatch.setattr(compiler, "SOURCE", tmp_path / "resize.c")
    monkeypatch.setenv("CC", f'{sys.executable} -c "{WRITES}"')
    return tmp_path / "resize.c"


def test_it_is_made_once(monkeypatch):
    compiler.main()
    assert compiler.library_path().read_text() == "made"
    monkeypatch.setenv("CC", "false")
    compiler.main()


def test_that_of_another_source_is_not_found_and_goes_when_there_is_a_new_one(source):
    compiler.main()
    first = compiler.library_path()
    source.write_text("second")
    assert not compiler.library_path().exists()
    compiler.main()
    assert {*source.parent.iterdir()} == {source, compiler.library_path()}
    assert compiler.library_path() != first


@pytest.mark.parametrize(
    ("command", "reason"),
    [("absent-compiler", "absent-compiler"), (f"{sys.executable} -c 'raise SystemExit(\"no such header\")'", "header")],
)
def test_without_a_compiler_that_works_it_says_so_and_leaves_nothing(source, monkeypatch, capsys, command, reason):
    monkeypatch.setenv("CC", command)
    compiler.main()
    assert reason in capsys.readouterr().err
    assert [*source.parent.iterdir()] == [source]
