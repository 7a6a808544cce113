"""model/checkpoints/durable.py: a file is there whole or as it was."""

import pytest

from model.checkpoints.durable import replacing


def test_what_is_written_takes_the_place(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_leaves_what_was_there(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(OSError, match="full"), replacing(path) as temporary:  # noqa: PT012
        temporary.write_text("ne")
        raise OSError("full")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
