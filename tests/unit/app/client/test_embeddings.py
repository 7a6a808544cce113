"""app/client/embeddings.py: an array that a later run goes on with."""

import os
import shutil
import sys
from itertools import count

import numpy as np
import pytest

from app.client import embeddings
from app.client.bulk import NotStarted
from app.client.embeddings import AHEAD, Embeddings

NAMES = ["a.png", os.fsdecode(b"\xff.png"), "b\r\n.png", '"c".png']
ROWS = [[0, 1], [np.nan, np.nan], [2, 1], [3, 1]]


def write(path, kept, names):
    """A run that finds `kept` images in its output."""
    embeddings = Embeddings(path, 2, NAMES[:kept])
    for name in names:
        row = ROWS[NAMES.index(name)]
        embeddings.append(name, None if np.isnan(row[0]) else row)
    embeddings.close()


def test_rows_have_names(tmp_path):
    path = tmp_path / "e.npy"
    write(path, 0, NAMES[:2])
    write(path, 2, NAMES[2:])
    assert np.array_equal(np.load(path), ROWS, equal_nan=True)
    assert (tmp_path / "e.txt").read_bytes() == b'a.png\n\xff.png\n"b\\r\\n.png"\n"\\"c\\".png"\n'
    assert {file.name for file in tmp_path.iterdir()} == {"e.npy", "e.txt"}


class Crash(Exception):
    pass


def crash(stop):
    """Before line number `stop` of those that run in embeddings.py."""
    lines = iter(range(stop))

    def trace(frame, event, _):
        if frame.f_code.co_filename != embeddings.__file__:
            return None
        if event == "line" and next(lines, None) is None:
            raise Crash
        return trace

    return trace


def test_a_crash_at_any_time_leaves_every_row_with_its_name(tmp_path):
    for stop in count():
        folder, left = tmp_path / f"{stop}", tmp_path / f"{stop}-left"
        folder.mkdir()
        written = Embeddings(folder / "e.npy", 2, [])
        done = 0
        before = sys.gettrace()
        sys.settrace(crash(stop))
        try:
            for name, row in zip(NAMES, ROWS, strict=True):
                written.append(name, row)
                done += 1
        except Crash:
            pass
        finally:
            sys.settrace(before)
        shutil.copytree(folder, left)  # what is still in buffers is lost
        written.close()
        assert done <= len(np.load(left / "e.npy")) <= (left / "e.txt").read_bytes().count(b"\n") <= done + 1
        write(left / "e.npy", done, NAMES[done:])
        assert np.array_equal(np.load(left / "e.npy"), ROWS, equal_nan=True)
        if done == len(NAMES):
            break
    assert stop > 3 * len(NAMES)


def test_rows_that_the_output_does_not_have_are_written_again(tmp_path):
    path = tmp_path / "e.npy"
    write(path, 0, NAMES)
    write(path, len(NAMES) - AHEAD, NAMES[-1:])
    assert np.array_equal(np.load(path), [*ROWS[:-AHEAD], ROWS[-1]], equal_nan=True)


@pytest.mark.parametrize(("features", "images"), [(3, NAMES), (2, NAMES[:1]), (2, NAMES[::-1]), (2, [])])
def test_rows_of_another_output_or_model_are_refused(tmp_path, features, images):
    path = tmp_path / "e.npy"
    write(path, 0, NAMES)
    before = path.read_bytes()
    with pytest.raises(NotStarted, match="do not belong to the images of the output: give another"):
        Embeddings(path, features, images)
    assert path.read_bytes() == before


@pytest.mark.parametrize("array", [np.zeros(()), np.zeros((2, 3)), np.zeros((2, 3), np.float32), b"text"])
def test_another_programs_files_are_not_overwritten(tmp_path, array):
    path, names = tmp_path / "e.npy", tmp_path / "e.txt"
    path.write_bytes(array) if isinstance(array, bytes) else np.save(path, array)
    before = path.read_bytes()
    with pytest.raises(NotStarted):
        Embeddings(path, 3, [])
    path.unlink()
    names.write_text("notes")
    with pytest.raises(NotStarted):
        Embeddings(path, 3, [])
    assert (names.read_text(), path.exists()) == ("notes", False)
    path.write_bytes(before)
    with pytest.raises(NotStarted):
        Embeddings(path, 3, ["a"])
    assert path.read_bytes() == before
