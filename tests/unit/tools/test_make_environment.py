"""make_environment.py: what is there is used if it fits, and named if it does not."""

import os
import subprocess
import sys
import venv

import pytest

import make_environment


@pytest.mark.parametrize(
    ("folders", "says"),
    [
        (["x"], "this is Python 3.10, and 3.11 to 3.14 is needed: give another, such as PYTHON=python3.12"),
        (
            [],
            "/old has Python 3.10, and 3.11 to 3.14 is needed: remove that folder, or give VENV=another and PYTHON=pyt",
        ),
    ],
)
def test_another_python_is_named(monkeypatch, folders, says):
    monkeypatch.setattr(sys, "version_info", (3, 10, 1, "final", 0))
    monkeypatch.setattr(sys, "prefix", "/old")
    with pytest.raises(SystemExit) as ended:
        make_environment.main(folders)
    assert says in str(ended.value)


def test_what_is_left_of_an_environment_without_its_python_is_removed(tmp_path, monkeypatch):
    folder = tmp_path / ".venv"
    create = venv.create
    monkeypatch.setattr(venv, "create", lambda where, **how: create(where, **how | {"with_pip": False}))
    make_environment.main([str(folder)])
    (folder / ".serve").touch()
    make_environment.main([str(folder)])
    assert not (folder / ".serve").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").touch()
    make_environment.main([str(tmp_path / "mine")])
    assert (tmp_path / "mine/file").exists()


@pytest.mark.parametrize("old", [None, "23.2"], ids=["without pip", "with an old pip"])
def test_pip_is_brought(tmp_path, old):
    """As uv makes environments, and as an editor does."""
    venv.create(tmp_path, with_pip=False, symlinks=True)
    python = tmp_path / "bin/python"
    if old:
        pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--retries", "1", f"pip=={old}"]
        done = subprocess.run(pip, capture_output=True, text=True)
        if "No matching distribution" in done.stderr:
            pytest.skip("pip finds no index of packages")
    done = subprocess.run(
        [python, "make_environment.py"], capture_output=True, text=True, env={**os.environ, "PIP_RETRIES": "1"}
    )
    if "No matching distribution" in done.stderr:
        pytest.skip("pip finds no index of packages")
    assert done.returncode == 0, done.stderr
    said = subprocess.run([python, "-m", "pip", "--version"], capture_output=True, text=True, check=True).stdout
    assert tuple(map(int, said.split()[1].split("."))) >= (25, 1)
