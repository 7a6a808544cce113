"""client/vit_serve_client/files.py: which images a command line means."""

import io
import os
from pathlib import Path

import pytest

from export.folder import SUFFIXES as SUFFIXES_OF_EXPORT
from vit_serve_client.files import SUFFIXES, base, image_files


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("b.png", "a.JPG", "notes.txt", ".hidden.png", "below/c.webp"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["."], ["a.JPG", "b.png", "below/c.webp"]),
        (["below", "b.png"], ["below/c.webp", "b.png"]),
        (["notes.txt"], ["notes.txt"]),
        (["*.png"], ["b.png"]),
        (["**/*.webp"], ["below/c.webp"]),
        (["b.png", ".", "b.png"], ["b.png", "a.JPG", "below/c.webp"]),
        (["-"], ["b.png", "a.JPG"]),
        (["be*"], ["below/c.webp"]),
    ],
)
def test_each_image_once_in_order(folder, arguments, expected):
    assert image_files(arguments, stdin=io.BytesIO(b"b.png\n\na.JPG")) == expected


@pytest.mark.timeout(60)
@pytest.mark.parametrize("arguments", [["."], ["**/*"], ["**"], ["*"], ["*", "below/**/*.webp"]])
def test_links_in_a_circle_add_nothing(folder, arguments, capsys):
    """With two links, glob and os.walk find ever more paths."""
    for name in ("up", "below/up"):
        (folder / name).symlink_to("." if name == "up" else "..")
    found = image_files(arguments, stdin=io.BytesIO())
    images = ["a.JPG", "b.png", "below/c.webp"]
    assert [name for name in found if not name.startswith("up/") and name != "notes.txt"] == images
    assert len(found) <= 2 * len(images) + 1  # a pattern that fits the link gives its files by that name, once
    assert "is left out: it is a link to a folder in which it lies" in capsys.readouterr().err


@pytest.mark.parametrize("argument", ["gone.png", "g*.png", "**/g*.png", "."])
def test_a_link_to_nothing_is_an_image_that_cannot_be_read(folder, argument):
    (folder / "gone.png").symlink_to("nowhere")
    assert "gone.png" in image_files([argument], stdin=io.BytesIO())


@pytest.mark.parametrize("listed", [b"b.png\n\xff\r.png\n", b"b.png\0\xff\r.png\0"])
def test_listed_names_are_bytes(folder, listed):
    odd = os.fsdecode(b"\xff\r.png")
    (folder / odd).touch()
    assert image_files(["-"], stdin=io.BytesIO(listed)) == ["b.png", odd]


def test_what_is_left_out_is_counted_by_suffix(folder, capsys):
    for name in ("more.TXT", "x.heic", "README", "below/named.txt"):
        (folder / name).touch()
    image_files([".", "below", "below/named.txt"], stdin=io.BytesIO())
    assert capsys.readouterr().err == "left out: 2 .txt, 1 without a suffix, 1 .heic\n"


@pytest.mark.parametrize(
    ("arguments", "made", "left_out"),
    [
        (["."], ["maps"], ["maps/b.png.png"]),
        (["{}"], ["maps", "below"], ["{}/below/c.webp", "{}/maps/b.png.png"]),
        (["**/*"], ["{}/link"], ["maps/b.png.png"]),
        (["-"], ["maps"], ["maps/b.png.png"]),
        ([".."], ["."], ["../folder/a.JPG", "../folder/b.png", "../folder/below/c.webp", "../folder/maps/b.png.png"]),
        (["maps", "below"], ["maps/", "."], ["maps/b.png.png"]),
        (["maps"], ["maps"], []),
        (["below"], ["."], []),
        (["maps/b.png.png"], ["maps"], []),
    ],
)
def test_what_an_earlier_run_made_is_no_image(tmp_path, monkeypatch, capsys, arguments, made, left_out):
    folder = tmp_path / "folder"
    for name in ("a.JPG", "b.png", "below/c.webp", "maps/b.png.png"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    (folder / "link").symlink_to("maps")
    (tmp_path / "other.png").touch()
    monkeypatch.chdir(folder)
    arguments, made, left_out = ([name.format(folder) for name in names] for names in (arguments, made, left_out))
    stdin = b"b.png\0maps/b.png.png"
    found = image_files(arguments, stdin=io.BytesIO(stdin))
    capsys.readouterr()
    kept = image_files(arguments, stdin=io.BytesIO(stdin), made=[Path(name) for name in made])
    assert [image for image in found if image not in kept] == left_out
    folders = " or ".join(str(Path(name)) for name in made)
    err = capsys.readouterr().err
    assert ("where this run writes" in err) == bool(left_out)
    assert not left_out or f"left out: {len(left_out)} images in {folders}, where this run writes\n" in err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["{}"], "{}"),
        (["{}/"], "{}"),
        (["{}/below", "{}"], "{}"),
        (["{}/below/c.webp", "{}/below"], "{}/below"),
        (["{}/**/*.png", "{}/b*"], "{}"),
        (["below", "."], "."),
        (["below"], "below"),
        (["below", "{}"], "."),
        (["-"], "."),
    ],
)
def test_the_base_is_the_folder_that_has_all(folder, arguments, expected):
    assert base([argument.format(folder) for argument in arguments]) == Path(expected.format(folder))


def test_heatmaps_beside_their_images_are_no_images(folder):
    for name in ("b.png.png", "below/c.webp.png", "a.png.png"):
        (folder / name).touch()
    found = image_files(["."], stdin=io.BytesIO(), made=[Path()])
    assert found == ["a.JPG", "a.png.png", "b.png", "below/c.webp"]


@pytest.mark.parametrize("arguments", [["nothing"], ["*.tiff"], ["-"], []])
def test_no_image_at_all(folder, arguments):
    with pytest.raises(FileNotFoundError):
        image_files(arguments, stdin=io.BytesIO())


def test_the_suffixes_are_those_of_exports_folders():
    assert SUFFIXES == SUFFIXES_OF_EXPORT
