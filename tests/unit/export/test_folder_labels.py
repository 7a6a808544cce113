"""export/folder_labels.py: which folder is which label."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from export.folder_labels import folder_labels
from model.checkpoints.imagenet import names_of, version_of
from model.checkpoints.labels import numbered

LABELS = ("golden retriever", "Star", "T-shirt", "crane", "crane")


@pytest.mark.parametrize(
    ("folders", "by", "classes"),
    [
        ({"golden_retriever", "star"}, "name", {"golden_retriever": 0, "star": 1}),
        ({"Golden Retriever", "t shirt"}, "name", {"Golden Retriever": 0, "t shirt": 2}),
        ({"0", "003"}, "index", {"0": 0, "003": 3}),
        ({"00"}, "index", {"00": 0}),
        ({"n2", "N4"}, "WordNet id", {"n2": 1, "N4": 3}),
    ],
)
def test_folders_are_called_by_name_wordnet_id_or_index(folders, by, classes):
    assert folder_labels(folders, LABELS, ("n1", "n2", "n3", "n4", "n5")) == (by, classes)
    assert folder_labels({"1", "2"}, ("2", "1"), ()) == ("name", {"1": 1, "2": 0})  # names that are numbers
    assert folder_labels({"1", "02"}, ("02", "1"), ()) == ("name", {"1": 1, "02": 0})
    assert folder_labels({"cafe\u0301"}, ("bar", "caf\xe9"), ()) == ("name", {"cafe\u0301": 1})  # a Mac's form


@pytest.mark.parametrize("folders", [set(), {"train", "val"}, {"9"}, {"-1"}, {"²"}, {""}])
def test_folders_that_are_no_labels(folders):
    assert folder_labels(folders, LABELS, ()) is None


@pytest.mark.parametrize(
    ("folders", "message"),
    [
        ({"star", "moon"}, "1 of 2 folders are called by the name of one label, but not moon"),
        ({"star", "crane"}, "but not crane"),  # two labels are called so
        ({"0", "5"}, "1 of 2 folders are called by the index of one label, but not 5"),
    ],
)
def test_a_folder_that_is_no_label_among_labels_is_refused(folders, message):
    with pytest.raises(ValueError, match="folders") as refusal:
        folder_labels(folders, LABELS, ())
    assert str(refusal.value).endswith(message)


def test_folders_have_no_indices_if_labels_are_numbers():
    labels = tuple(map(str, range(1, 13)))
    with pytest.raises(ValueError, match="are called by the name of one label, but not 0"):
        folder_labels({*map(str, range(12))}, labels, ())
    assert folder_labels({"0"}, labels, ()) is None


@pytest.mark.parametrize(
    ("folders", "classes", "found"),
    [
        (range(10), 10, range(10)),
        (("00", "02", "10"), 12, (0, 2, 10)),  # the same order as numbers and as text
        (range(1, 10), 9, range(9)),
        (range(12), 12, None),  # torchvision's order is that of text
        ((0, 2, 10), 12, None),
        ((1, 3), 9, None),  # from 0 or from 1
        (range(13), 12, None),
        ((1999, 2005), 12, None),
    ],
)
def test_numbered_folders_are_classes_where_every_order_gives_the_same(folders, classes, found):
    for word in ("", "class_"):
        names = [f"{word}{folder}" for folder in folders]
        expected = found and ("index", dict(zip(names, found, strict=True)))
        try:
            assert folder_labels(names, numbered(classes), ()) == expected
        except ValueError:  # some are indices and others are not
            assert max(map(int, folders)) >= classes


@pytest.mark.parametrize("way", ["name", "WordNet id"])
def test_every_class_of_imagenet_is_found(way):
    wordnet = version_of(1000).wordnet
    names = names_of(wordnet)
    folders = {"name": names, "WordNet id": wordnet}[way]
    assert folder_labels(folders, names, wordnet) == (way, {folder: index for index, folder in enumerate(folders)})


@given(st.sets(st.text(max_size=4), max_size=4), st.lists(st.text(max_size=4), max_size=4))
def test_any_names(folders, labels):
    try:
        found = folder_labels(folders, labels, ())
    except ValueError:
        return
    assert found is None or found.classes.keys() == folders
