"""export/folder_labels.py: which folder is which label."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from export.folder_labels import folder_labels
from model.checkpoints.imagenet import names_of, version_of

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


@pytest.mark.parametrize("folders", [set(), {"train", "val"}, {"9"}, {"-1"}, {"²"}, {""}])
def test_folders_that_are_no_labels(folders):
    assert folder_labels(folders, LABELS, ()) is None


@pytest.mark.parametrize(
    ("folders", "message"),
    [
        ({"star", "moon"}, "1 of 2 folders are called by the name of one label, but not moon"),
        ({"star", "crane"}, "but not crane"),  # two labels are called so
        ({"star", "a", "b", "c", "d"}, "but not a, b, c and others"),
        ({"0", "5"}, "1 of 2 folders are called by the index of one label, but not 5"),
    ],
)
def test_a_folder_that_is_no_label_among_labels_is_refused(folders, message):
    with pytest.raises(ValueError, match="folders") as refusal:
        folder_labels(folders, LABELS, ())
    assert str(refusal.value).endswith(message)


@pytest.mark.parametrize("way", ["name", "WordNet id", "index"])
def test_every_class_of_imagenet_is_found(way):
    wordnet = version_of(1000).wordnet
    names = names_of(wordnet)
    folders = {"name": names, "WordNet id": wordnet, "index": tuple(map(str, range(1000)))}[way]
    assert folder_labels(folders, names, wordnet) == (way, {folder: index for index, folder in enumerate(folders)})


@given(st.sets(st.text(max_size=4), max_size=4), st.lists(st.text(max_size=4), max_size=4))
def test_any_names(folders, labels):
    try:
        found = folder_labels(folders, labels, ())
    except ValueError:
        return
    assert found is None or found.classes.keys() == folders
