"""app/client/embeddings.py: an array that a later run goes on with."""

import os

import numpy as np
import pytest

from app.client.embeddings import open_rows


def test_rows_are_kept_when_images_come_and_go(tmp_path):
    path, odd = tmp_path / "e.npy", os.fsdecode(b"\xff.png")  # as Python reads a name that is no UTF-8
    for image, row in open_rows(path, ["a.png", "b.png", odd], 2).items():
        row[:] = [len(image), 1]
    open_rows(path, ["new.png", odd, "a.png"], 2)["new.png"][:] = [9, 9]
    assert np.load(path).tolist() == [[9, 9], [5, 1], [5, 1]]
    assert (tmp_path / "e.txt").read_bytes() == b"new.png\n\xff.png\na.png\n"
    assert {file.name for file in tmp_path.iterdir()} == {"e.npy", "e.txt"}


def test_rows_are_nan_until_they_are_filled(tmp_path):
    rows = open_rows(tmp_path / "e.npy", ["a", "b"], 3)
    rows["b"][:] = 1
    del rows
    again = open_rows(tmp_path / "e.npy", ["a", "b"], 3)
    assert np.isnan(again["a"]).all()
    assert again["b"].tolist() == [1, 1, 1]


def test_rows_of_another_model_are_refused(tmp_path):
    open_rows(tmp_path / "e.npy", ["a"], 3)
    with pytest.raises(ValueError, match="of another model"):
        open_rows(tmp_path / "e.npy", ["a", "b"], 4)


@pytest.mark.parametrize("array", [np.zeros(()), np.zeros((2, 3)), None])
def test_another_programs_file_is_not_overwritten(tmp_path, array):
    path = tmp_path / "e.npy"
    path.touch() if array is None else np.save(path, array)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="has not written it"):
        open_rows(path, ["a"], 3)
    (tmp_path / "e.txt").write_text("a\n")
    with pytest.raises(ValueError, match="has not written it"):
        open_rows(path, ["a"], 3)
    assert path.read_bytes() == before
