"""model/durable.py: a file or a folder is there whole or as it was."""

from pathlib import Path

import pytest

from model.durable import replacing, replacing_folder


def test_the_written_file_takes_the_place(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(OSError, match="full"), replacing(path) as temporary:  # noqa: PT012
        temporary.write_text("ne")
        raise OSError("full")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_filled_folder_takes_the_place_of_the_old_one(tmp_path):
    path = tmp_path / "folder"
    path.mkdir()
    (path / "old").touch()
    with replacing_folder(path) as folder:
        (folder / "new").touch()
        assert (path / "old").exists()
    assert [file.name for file in path.iterdir()] == ["new"]
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_cannot_take_the_place_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "folder"
    path.mkdir()
    (path / "old").touch()
    rename = Path.rename

    def refused(self, target):
        if self.name == "new":
            raise OSError("no such name")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refused)
    with pytest.raises(OSError, match="no such name"), replacing_folder(path) as folder:
        (folder / "new").touch()
    assert [file.name for file in path.iterdir()] == ["old"]
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_leaves_the_old_folder(tmp_path):
    path = tmp_path / "folder"
    path.mkdir()
    (path / "old").touch()
    with pytest.raises(OSError, match="full"), replacing_folder(path) as folder:  # noqa: PT012
        (folder / "new").touch()
        raise OSError("full")
    assert [file.name for file in path.iterdir()] == ["old"]
    assert list(tmp_path.iterdir()) == [path]
