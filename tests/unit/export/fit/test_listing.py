"""export/fit/listing.py: folders of labels, `train` and `val` inside, and CSV files."""

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from export.fit.listing import Labelled, list_images


def fill(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())


def shown(part, folder):
    return None if part is None else [(str(image.file.relative_to(folder)), image.label) for image in part]


@pytest.mark.parametrize(
    ("files", "labels"),
    [
        (["cat/2020/b.PNG", "cat/a.webp", "dog/a.jpg"], ["cat", "cat", "dog"]),  # however deep they lie
        (["train/cat/a.jpg"], ["cat"]),  # `train` alone holds the labels
        (["bus/a.jpg", "train/a.jpg"], ["bus", "train"]),  # or is one of them
    ],
)
def test_a_folder_is_a_label(tmp_path, files, labels):
    fill(tmp_path, *files)
    listing = list_images(tmp_path)
    assert shown(listing.train, tmp_path) == list(zip(files, labels, strict=True))
    assert (listing.held_out, listing.notes) == (None, ())


@pytest.mark.parametrize(
    ("train", "name", "unused"),
    [("train", "val", "test"), ("train", "valid", "test"), ("Training", "Validation", "test"), ("train", "test", None)],
)
def test_train_and_val_inside(tmp_path, train, name, unused):
    fill(tmp_path, f"{train}/cat/a.jpg", f"{train}/dog/a.jpg", f"{name}/cat/b.jpg", "test/cat/b.jpg")
    listing = list_images(tmp_path)
    assert shown(listing.train, tmp_path) == [(f"{train}/cat/a.jpg", "cat"), (f"{train}/dog/a.jpg", "dog")]
    assert shown(listing.held_out, tmp_path) == [(f"{name}/cat/b.jpg", "cat")]
    assert listing.notes == ((f"{tmp_path} has test beside {train} and {name}, not used",) if unused else ())


def test_notes_name_unused_files(tmp_path):
    fill(tmp_path, "cat/a.jpg", "cat/b.heic", "dog/c.heic", "dog/notes.txt", "dog/LICENSE")
    fill(tmp_path, ".ipynb_checkpoints/cat/a.jpg", "cat/.a.jpg", "__MACOSX/cat/._a.jpg")
    listing = list_images(tmp_path)
    assert shown(listing.train, tmp_path) == [("cat/a.jpg", "cat")]
    kinds = "files that do not have the suffix of an image are not tried: .heic (2), none (1), .txt (1)"
    assert listing.notes == (f"{tmp_path}: {kinds}", f"{tmp_path}: there are no images in __MACOSX, dog")


@pytest.mark.parametrize(
    ("text", "train", "held_out"),
    [
        ("\ufeffLabel,note,File\ncat, x ,a.jpg\n  dog , ,b/c.jpg\n", [("a.jpg", "cat"), ("b/c.jpg", "dog")], None),
        ("file,label,split\n/a.jpg,cat,train\n../b.jpg,cat,val\n", [("/a.jpg", "cat")], [("../b.jpg", "cat")]),
        ("file\na.jpg\n", [("a.jpg", "")], None),
    ],
)
def test_a_csv(tmp_path, text, train, held_out):
    path = tmp_path / "images.csv"
    path.write_text(text, encoding="utf-8")
    listing = list_images(path, labelled="label" in text.lower())
    assert listing.train == tuple(Labelled(tmp_path / file, label) for file, label in train)
    assert listing.held_out == (held_out and tuple(Labelled(tmp_path / file, label) for file, label in held_out))


@given(st.lists(st.tuples(*[st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)] * 2)))
def test_any_names_pass_through_a_csv(tmp_path_factory, rows):
    rows = [row for row in rows if all(cell.strip() for cell in row)]
    path = tmp_path_factory.getbasetemp() / "images.csv"
    with path.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows([("file", "label"), *rows, ("last", "one")])
    found = [(image.file, image.label) for image in list_images(path).train]
    assert found == [(path.parent / file.strip(), label.strip()) for file, label in [*rows, ("last", "one")]]


def outcome(path) -> tuple[Labelled, ...] | str:
    """What is learned from, or the sentence of the refusal."""
    try:
        return list_images(path).train
    except ValueError as error:
        return str(error)


@given(st.binary())
def test_no_csv_ends_in_a_traceback(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "images.csv"
    path.write_bytes(b"file,label\n" + content)
    found = outcome(path)
    assert found if isinstance(found, tuple) else found.startswith("--images ")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "has no images"),
        (["cat/a.heic"], "has no images. "),
        (["cat/a.jpg", "b.jpg"], "b.jpg is in no folder below"),
        (["train/cat/a.jpg", "val/fox/b.jpg"], "labels that no other image has: fox"),
        ("", "its first line is empty; it lacks file and label"),
        ("image,label\n", "its first line is image, label; it lacks file"),
        ("file,label\n", "it lists no images to learn from"),
        ("file,label\na.jpg\n", "line 2: label is empty"),
        ("file,label,split\na.jpg,cat,held\n", "line 2: split is 'held', and not train or val"),
        ("file,label,split\na.jpg,cat,train\nb.jpg,dog,val\n", "labels that no other image has: dog"),
    ],
)
def test_folders_and_csv_files_that_are_refused(tmp_path, given, message):
    path = tmp_path / "images.csv" if isinstance(given, str) else tmp_path
    if isinstance(given, str):
        path.write_text(given)
    else:
        fill(tmp_path, *given)
    assert message in outcome(path)


def test_a_file_that_is_no_csv_is_refused(tmp_path):
    fill(tmp_path, "a.jpg")
    assert outcome(tmp_path / "a.jpg").endswith("this is neither a folder nor a CSV file")
