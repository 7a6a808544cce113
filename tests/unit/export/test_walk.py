"""export/walk.py and client/vit_serve_client/walk.py: every real folder once."""

import os
from pathlib import Path

import pytest

from export.walk import DEEPEST, walk

pytestmark = pytest.mark.timeout(60)


def fill(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())


def walked(folder):
    """Names of files, of links that are not followed, and of folders that cannot be read."""
    return tuple([str(path.relative_to(folder)) for path in paths] for paths in walk(folder))


def test_the_code_of_both_is_the_same():
    assert Path("client/vit_serve_client/walk.py").read_text() == Path("export/walk.py").read_text()


def test_files_in_the_order_of_their_names_without_hidden_ones(tmp_path, monkeypatch):
    names = ["a/2.jpg", "a/b/1.jpg", "a-b/1.jpg", "a.jpg", "z/notes.txt"]
    fill(tmp_path, *names, ".git/1.jpg", "a/.ipynb_checkpoints/1.jpg", "a/._1.jpg", "a/@eaDir/2.jpg/S.jpg")
    assert walked(tmp_path) == (names, [], [])
    monkeypatch.chdir(tmp_path)
    assert [str(path) for path in walk(Path()).files] == names


@pytest.mark.parametrize(
    ("links", "found", "repeated"),
    [
        ({"a/up": ".."}, ["a/1.jpg", "b/1.jpg"], ["a/up"]),
        ({"a/up": "..", "b/up": ".."}, ["a/1.jpg", "b/1.jpg"], ["a/up", "b/up"]),  # 2^40 paths, if they are followed
        ({"a/up": "../.."}, ["a/1.jpg", "b/1.jpg"], ["a/up"]),  # what lies beside the images is not among them
        ({"0": "a"}, ["a/1.jpg", "b/1.jpg"], ["0"]),  # the real folder counts, though its name comes later
        ({"a/b": "../b", "b/a": "../a"}, ["a/1.jpg", "b/1.jpg"], ["a/b", "b/a"]),
        ({"c": "../beside/c", "d": "../beside/c"}, ["a/1.jpg", "b/1.jpg", "c/1.jpg"], ["d"]),
        ({"c": "../beside"}, ["a/1.jpg", "b/1.jpg", "c/1.jpg", "c/c/1.jpg"], ["c/back", "c/up"]),
        ({"c.jpg": "a/1.jpg"}, ["a/1.jpg", "b/1.jpg", "c.jpg"], []),  # a link to a file is a file
        ({"x.jpg": "x.jpg", "y.jpg": "no"}, ["a/1.jpg", "b/1.jpg", "x.jpg", "y.jpg"], []),  # opening it says why not
    ],
)
def test_every_real_folder_once(tmp_path, links, found, repeated):
    fill(tmp_path, "images/a/1.jpg", "images/b/1.jpg", "beside/1.jpg", "beside/c/1.jpg")
    (tmp_path / "beside" / "up").symlink_to("..")
    (tmp_path / "beside" / "back").symlink_to("../images/a")
    for link, target in links.items():
        (tmp_path / "images" / link).symlink_to(target)
    files, not_followed, unread = walked(tmp_path / "images")
    assert (files, not_followed, unread) == (found, repeated, [])


def test_a_folder_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    """The user of the tests may read every folder, so the system is made to refuse."""
    fill(tmp_path, "a/1.jpg", "b/1.jpg")
    real = os.scandir

    def refuse(path):
        if str(path).endswith("b"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert walked(tmp_path) == (["a/1.jpg"], [], ["b"])


def test_limits_are_refused_in_words(tmp_path, monkeypatch):
    fill(tmp_path, f"{'a/' * DEEPEST}1.jpg")
    assert len(walk(tmp_path).files) == 1
    fill(tmp_path, f"{'a/' * DEEPEST}a/1.jpg")
    with pytest.raises(ValueError, match=f"lies more than {DEEPEST} folders below {tmp_path}"):
        walk(tmp_path)
    monkeypatch.setattr("export.walk.MOST", 10)
    with pytest.raises(ValueError, match=f"{tmp_path} has more than 10 files and folders"):
        walk(tmp_path)
