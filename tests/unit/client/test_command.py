"""client/vit_serve_client/command.py: one sentence says what is wrong with a command."""

import subprocess
import sys
from typing import get_args

import pytest

from app.maps.attention_map import Method
from vit_serve_client.command import main
from vit_serve_client.options import METHODS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["service:8000", "a.png"], "argument server: the address must begin with http:// or https://"),
        (["http://s", "a.png", "--key", "a\nb"], "argument --key: a key has no spaces"),
        (["http://s", "a.png", "--part", "2/2"], "argument --part: the parts of 2 are 0/2 to 1/2"),
        (["http://s", "a.png", "--least-familiarity", "nan"], "--least-familiarity: it must be a number from 0 to 1"),
    ],
)
def test_arguments(arguments, message, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_the_command_takes_every_method_of_the_service():
    assert get_args(Method) == METHODS


def test_no_image():
    with pytest.raises(SystemExit, match=r"^not started: there is no file, folder or pattern nothing\.png$"):
        main(["http://s", "nothing.png"])


def test_parquet_without_pyarrow_is_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "a.png").touch()
    for option in ("--out", "--embeddings"):
        with pytest.raises(SystemExit, match=r"^not started: x\.parquet needs pyarrow: pip install pyarrow$"):
            main(["http://s", str(tmp_path), option, "x.parquet"])


@pytest.mark.parametrize("name", ["x.parquet", "x.csv"])
def test_labels_and_embeddings_in_one_place_are_refused(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.png").touch()
    with pytest.raises(SystemExit, match=r"^not started: --out, --embeddings and --patches cannot have one place"):
        main(["http://s", "a.png", "--out", name, "--embeddings", str(tmp_path / name)])
    assert [file.name for file in tmp_path.iterdir()] == ["a.png"]


def test_a_name_does_not_move_the_cursor():
    with pytest.raises(SystemExit, match=r"pattern \\x1b\[2J\\n$"):
        main(["http://s", "\x1b[2J\n"])


def test_it_starts_without_fcntl():
    program = "import sys; sys.modules['fcntl'] = None; from vit_serve_client.command import main; main(['--help'])"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd="client")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: vit-serve-client")


def test_ctrl_c_while_it_is_imported_is_one_line():
    """As what is imported catches KeyboardInterrupt here, libraries may."""
    program = """
import os, runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell starts in the background
class Interrupting:
    def find_spec(self, name, path, target=None):
        if name == "httpx":
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except BaseException:
                raise ImportError
sys.meta_path.insert(0, Interrupting())
runpy.run_module("vit_serve_client", run_name="__main__")
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd="client")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted: no image was sent\n")
