"""model/durable.py: a file or a folder is there whole or as it was."""

import errno
import os
import stat
from pathlib import Path

import pytest

from model.durable import replacing, replacing_folder


@pytest.fixture(params=[replacing, replacing_folder])
def replace(request):
    return request.param


def write(path: Path, content: str, *, of) -> None:
    """A file, or a folder with a file of that name."""
    if of is replacing:
        path.write_text(content)
    else:
        path.mkdir(exist_ok=True)
        (path / content).touch()


def content(path: Path) -> str:
    return " ".join(file.name for file in path.iterdir()) if path.is_dir() else path.read_text()


def test_the_new_content_takes_the_place_of_the_old(tmp_path, replace):
    path = tmp_path / "there"
    write(path, "old", of=replace)
    with replace(path) as temporary:
        write(temporary, "new", of=replace)
        assert content(path) == "old"
    assert content(path) == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_system_need_not_write_the_names_of_a_folder_to_the_disk(tmp_path, monkeypatch, replace):
    """As Samba does not; what is lost of a file is an error."""

    def fsync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "fsync", fsync)
    with replace(tmp_path / "there") as temporary:
        write(temporary, "new", of=replace)
    assert content(tmp_path / "there") == "new"


def test_an_error_leaves_the_old_content(tmp_path, replace):
    path = tmp_path / "there"
    write(path, "old", of=replace)
    with pytest.raises(OSError, match="full"), replace(path) as temporary:  # noqa: PT012
        write(temporary, "ne", of=replace)
        raise OSError("full")
    assert content(path) == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_cannot_take_the_place_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "folder"
    write(path, "old", of=replacing_folder)
    rename = Path.rename

    def refused(self, target):
        if self.name == "new":
            raise OSError("no such name")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refused)
    with pytest.raises(OSError, match="no such name"), replacing_folder(path) as folder:
        write(folder, "new", of=replacing_folder)
    assert content(path) == "old"
    assert list(tmp_path.iterdir()) == [path]
