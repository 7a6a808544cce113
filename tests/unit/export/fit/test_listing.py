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


def test_a_folder_is_a_label_however_deep_images_lie(tmp_path):
    fill(tmp_path, "dog/a.jpg", "cat/2020/b.PNG", "cat/a.webp")
    listing = list_images(tmp_path)
    expected = [("cat/2020/b.PNG", "cat"), ("cat/a.webp", "cat"), ("dog/a.jpg", "dog")]
    assert (shown(listing.train, tmp_path), listing.held_out, listing.notes) == (expected, None, ())


@pytest.mark.parametrize("name", ["val", "valid", "validation", "test"])
def test_train_and_val_inside(tmp_path, name):
    fill(tmp_path, "train/cat/a.jpg", "train/dog/a.jpg", f"{name}/cat/b.jpg")
    listing = list_images(tmp_path)
    assert shown(listing.train, tmp_path) == [("train/cat/a.jpg", "cat"), ("train/dog/a.jpg", "dog")]
    assert shown(listing.held_out, tmp_path) == [(f"{name}/cat/b.jpg", "cat")]


def test_val_goes_before_test_with_a_note(tmp_path):
    fill(tmp_path, "train/cat/a.jpg", "test/cat/c.jpg", "val/cat/b.jpg")
    listing = list_images(tmp_path)
    assert shown(listing.held_out, tmp_path) == [("val/cat/b.jpg", "cat")]
    assert listing.notes == (f"{tmp_path} has test beside train and val, not used",)


def test_train_alone_holds_the_labels(tmp_path):
    fill(tmp_path, "train/cat/a.jpg")
    assert shown(list_images(tmp_path).train, tmp_path) == [("train/cat/a.jpg", "cat")]


def test_train_may_be_a_label_among_others(tmp_path):
    fill(tmp_path, "train/a.jpg", "bus/a.jpg")
    assert [label for _, label in list_images(tmp_path).train] == ["bus", "train"]


def test_notes_name_unused_files(tmp_path):
    fill(tmp_path, "cat/a.jpg", "cat/b.heic", "dog/c.heic", "dog/notes.txt", "dog/LICENSE")
    fill(tmp_path, ".ipynb_checkpoints/cat/a.jpg", "cat/.a.jpg", "__MACOSX/cat/._a.jpg")
    listing = list_images(tmp_path)
    assert shown(listing.train, tmp_path) == [("cat/a.jpg", "cat")]
    kinds = "files that do not have the suffix of an image are not tried: .heic (2), none (1), .txt (1)"
    assert listing.notes == (f"{tmp_path}: {kinds}", f"{tmp_path}: there are no images in __MACOSX, dog")


def test_images_without_labels_may_lie_anywhere(tmp_path):
    fill(tmp_path, "a.jpg", "b/c/d.png")
    assert list_images(tmp_path, labelled=False).train == (
        Labelled(tmp_path / "a.jpg", ""),
        Labelled(tmp_path / "b" / "c" / "d.png", ""),
    )


def test_a_csv(tmp_path):
    path = tmp_path / "images.csv"
    path.write_text("\ufeffLabel,note,File\ncat, x ,a.jpg\n  dog , ,sub/b.jpg\n", encoding="utf-8")
    listing = list_images(path)
    assert shown(listing.train, tmp_path) == [("a.jpg", "cat"), ("sub/b.jpg", "dog")]
    assert listing.held_out is None


def test_a_csv_with_a_split_and_files_elsewhere(tmp_path):
    path = tmp_path / "images.csv"
    path.write_text(f"file,label,split\n{tmp_path}/a.jpg,cat,train\n../b.jpg,cat,val\n")
    listing = list_images(path)
    assert listing.train == (Labelled(tmp_path / "a.jpg", "cat"),)
    assert listing.held_out == (Labelled(tmp_path / ".." / "b.jpg", "cat"),)


def test_a_csv_without_labels_is_enough_where_none_are_needed(tmp_path):
    path = tmp_path / "images.csv"
    path.write_text("file\na.jpg\n")
    assert list_images(path, labelled=False).train == (Labelled(tmp_path / "a.jpg", ""),)


@given(st.lists(st.tuples(*[st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)] * 2)))
def test_any_names_pass_through_a_csv(tmp_path_factory, rows):
    rows = [row for row in rows if all(cell.strip() for cell in row)]
    path = tmp_path_factory.mktemp("csv") / "images.csv"
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
    path = tmp_path_factory.mktemp("csv") / "images.csv"
    path.write_bytes(b"file,label\n" + content)
    found = outcome(path)
    assert found if isinstance(found, tuple) else found.startswith("--images ")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], "has no images"),
        (["cat/a.heic"], "has no images. "),
        (["cat/a.jpg", "b.jpg"], "b.jpg is in no folder below"),
        (["train/cat/a.jpg", "val/fox/b.jpg"], "labels that no other image has: fox"),
    ],
)
def test_folders_that_are_refused(tmp_path, files, message):
    fill(tmp_path, *files)
    with pytest.raises(ValueError, match="a") as refusal:
        list_images(tmp_path)
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "its first line is empty; it lacks file and label"),
        ("image,label\n", "its first line is image, label; it lacks file"),
        ("file,label\n", "it lists no images to learn from"),
        ("file,label\na.jpg\n", "line 2: label is empty"),
        ("file,label,split\na.jpg,cat,held\n", "line 2: split is 'held', and not train or val"),
        ("file,label,split\na.jpg,cat,train\nb.jpg,dog,val\n", "labels that no other image has: dog"),
    ],
)
def test_csv_files_that_are_refused(tmp_path, text, message):
    path = tmp_path / "images.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match="a") as refusal:
        list_images(path)
    assert message in str(refusal.value)


def test_a_path_that_is_neither(tmp_path):
    with pytest.raises(ValueError, match="this is neither a folder nor a CSV file"):
        list_images(tmp_path / "nowhere")
