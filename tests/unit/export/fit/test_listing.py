"""export/fit/listing.py: folders of labels, and `train` and `val` inside."""

import os
import re

import pytest

from export.fit.listing import list_images


def fill(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.fsencode(name))


def shown(part, folder):
    return None if part is None else [(str(image.file.relative_to(folder)), image.label) for image in part]


@pytest.mark.parametrize(
    ("files", "labels"),
    [
        (["cat/2020/b.PNG", "cat/a.webp", "dog/a.jpg"], ["cat", "cat", "dog"]),  # however deep they lie
        (["train/cat/a.jpg", "train/dog/a.jpg"], ["cat", "dog"]),  # `train` alone holds the labels
        (["Cafe\u0301/a.jpg", "bar /a.jpg"], ["Caf\xe9", "bar"]),  # one form of Unicode, without spaces around it
        (["bus/a.jpg", "train/a.jpg"], ["bus", "train"]),  # or is one of them
    ],
)
def test_a_folder_is_a_label(tmp_path, files, labels):
    fill(tmp_path, *files)
    listing = list_images(tmp_path)
    assert sorted(shown(listing.train, tmp_path)) == sorted(zip(files, labels, strict=True))
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


@pytest.mark.parametrize(("held_out", "flat"), [(None, "test"), ("test", "val")])
def test_a_part_without_folders_of_labels_is_not_used(tmp_path, held_out, flat):
    fill(tmp_path, "train/cat/a.jpg", "train/dog/a.jpg", f"{flat}/1.jpg", "more/1.jpg")
    if held_out:
        fill(tmp_path, f"{held_out}/cat/b.jpg")
    listing = list_images(tmp_path)
    assert len(listing.train) == 2
    assert shown(listing.held_out, tmp_path) == (held_out and [(f"{held_out}/cat/b.jpg", "cat")])
    used = f"train and {held_out}" if held_out else "train"
    notes = f"{tmp_path}/{flat} has no folders of labels, not used", f"{tmp_path} has more beside {used}, not used"
    assert listing.notes == notes


def test_notes_name_unused_files(tmp_path):
    fill(tmp_path, "cat/a.jpg", "cat/b.heic", "cow/a.jpg", "dog/c.heic", "dog/notes.txt", "dog/LICENSE")
    fill(tmp_path, ".ipynb_checkpoints/cat/a.jpg", "cat/.a.jpg", "__MACOSX/cat/._a.jpg")
    listing = list_images(tmp_path)
    assert shown(listing.train, tmp_path) == [("cat/a.jpg", "cat"), ("cow/a.jpg", "cow")]
    kinds = "files that do not have the suffix of an image are not tried: .heic (2), none (1), .txt (1)"
    assert listing.notes == (f"{tmp_path}: {kinds}", f"{tmp_path}: there are no images in __MACOSX, dog")


def test_what_is_no_text_is_left_out(tmp_path):
    fill(tmp_path, "a/1.jpg", "b/1.jpg", os.fsdecode(b"caf\xe9/1.jpg"))
    listing = list_images(tmp_path)
    assert [image.label for image in listing.train] == ["a", "b"]
    assert [(str(left.file), left.reason) for left in listing.left_out] == [
        (f"{tmp_path}/caf\\udce9/1.jpg", "its name is not text in UTF-8")
    ]
    assert listing.notes == (f"{tmp_path}: there are no images in caf\\udce9",)


@pytest.mark.parametrize(
    ("files", "note"),
    [
        (["Cat/a.jpg", "cat/b.jpg"], "Cat and cat are different labels"),
        (["cat/a.jpg", "cat /b.jpg", "dog/a.jpg"], "{}: the folders 'cat' and 'cat ' have one label, 'cat'"),
        (
            ["first/cat/a.jpg", "first/dog/a.jpg", "second/cat/b.jpg", "second/dog/b.jpg", "second/cow/b.jpg"],
            "{0}: all labels have the folders cat, dog. If these are the labels, call the folders in {0} train and val",
        ),
        (
            ["a/1.png", "a/1_mask.png", "b/2.png", "b/2_mask_1.png", "b/mask.png"],
            "{}: images that are called as masks of others are read too: 1_mask.png, 2_mask_1.png",
        ),
    ],
)
def test_notes_name_labels_that_may_be_others(tmp_path, files, note):
    fill(tmp_path, *files)
    assert list_images(tmp_path).notes == (note.format(tmp_path),)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], "has no images"),
        (["cat/a.jpg", "b.jpg"], "b.jpg is in no folder below"),
        (["train/cat/a.jpg", "train/dog/a.jpg", "val/fox/b.jpg"], "labels that no other image has: fox"),
        (
            ["train/Cat/a.jpg", "train/dog/a.jpg", "val/cat/b.jpg"],
            "labels that no other image has: cat. Cat and cat are different labels",
        ),
        (["cat/a.jpg", "cat/b.jpg"], "the only label in {} is cat, and two are needed"),
        (
            ["dataset/train/cat/a.jpg", "dataset/val/cat/b.jpg", "__MACOSX/dataset/._a.jpg"],
            "the only label in {0} is dataset, and two are needed. If train, val in {0}/dataset are the labels, give "
            "{0}/dataset",
        ),
        (["train/cat.0.jpg", "test1/1.jpg"], "{}: test1, train are names of parts of a data set, not of labels"),
        (["HAM_part_1/a.jpg", "HAM_part_2/b.jpg"], "are names of parts of a data set"),
        (["images/a.jpg", "masks/a.png"], "are names of parts of a data set"),
        (["seg_train/sea/a.jpg", "seg_test/sea/b.jpg", "seg_pred/c.jpg"], "are names of parts of a data set"),
        (["a/b/cat/a.jpg", "a/b/dog/a.jpg"], "If cat, dog in {0}/a/b are the labels, give {0}/a/b"),
    ],
)
def test_folders_that_are_refused(tmp_path, files, message):
    fill(tmp_path, *files)
    with pytest.raises(ValueError, match=re.escape(message.format(tmp_path))):
        list_images(tmp_path)


def test_a_file_that_is_no_csv_is_refused(tmp_path):
    fill(tmp_path, "a.jpg")
    os.mkfifo(tmp_path / "pipe.csv")
    for name in ("a.jpg", "pipe.csv"):
        with pytest.raises(ValueError, match=r"this is neither a folder nor a CSV file$"):
            list_images(tmp_path / name)
