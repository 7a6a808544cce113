"""export/folder_labels.py: which folder is which label."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from export.folder_labels import folder_labels, orders
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
        ({"star", "a", "b", "c", "d"}, "but not a, b, c and others"),
        ({"0", "5"}, "1 of 2 folders are called by the index of one label, but not 5"),
        ({*map(str, range(6))}, "5 of 6 folders are called by the index of one label, but not 5"),
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


NUMBER, TEXT, FROM_ONE = "by their numbers", "by their names as text", ", from 1"


@pytest.mark.parametrize(
    ("folders", "classes", "found"),
    [
        (range(12), 12, {NUMBER: (*range(12),), TEXT: (0, 1, 4, 5, 6, 7, 8, 9, 10, 11, 2, 3)}),
        ((0, 2, 10), 12, {NUMBER: (0, 2, 10), TEXT: (0, 4, 2)}),  # classes without an image
        (range(10), 10, {NUMBER: (*range(10),)}),
        (("00", "02", "10"), 12, {NUMBER: (0, 2, 10)}),  # the same order as numbers and as text
        (range(1, 10), 9, {NUMBER + FROM_ONE: (*range(9),)}),
        (
            range(1, 13),
            12,
            {NUMBER + FROM_ONE: (*range(12),), TEXT + FROM_ONE: (0, 4, 5, 6, 7, 8, 9, 10, 11, 1, 2, 3)},
        ),
        ((1, 3), 9, {NUMBER: (1, 3), NUMBER + FROM_ONE: (0, 2)}),  # from 0 or from 1
        (
            (10, 11),
            12,
            {NUMBER: (10, 11), TEXT: (2, 3), NUMBER + FROM_ONE: (9, 10), TEXT + FROM_ONE: (1, 2)},
        ),
        (range(13), 12, {}),
        ((1999, 2005), 12, {}),
        (("0", "-1"), 12, {}),
        ((), 12, {}),
    ],
)
def test_every_order_that_numbered_folders_may_have(folders, classes, found):
    """The order of text is that of torchvision's find_classes, which is `sorted`."""
    names = [*map(str, folders)]
    assert orders(names, classes) == {order: dict(zip(names, of, strict=True)) for order, of in found.items()}
    words = {f"class_{name}": name for name in names}
    assert orders(words, classes) == {
        order: {word: of[name] for word, name in words.items()} for order, of in orders(names, classes).items()
    }
    if found:
        assert folder_labels(names, ["x"] * classes, ()).classes == next(iter(orders(names, classes).values()))
        assert folder_labels(words, numbered(classes), ()) == ("index", next(iter(orders(words, classes).values())))


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
