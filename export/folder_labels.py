"""The class that each folder of FOLDER/label/image.jpg stands for; torchvision calls this form ImageFolder."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Literal, NamedTuple

from model.checkpoints.labels import numbered

By = Literal["name", "WordNet id", "index"]


class FolderLabels(NamedTuple):
    by: By  # what the folders are called by
    classes: dict[str, int]  # index of the label by the name of a folder


def label_of(name: str) -> str:
    """The label that a folder's name, or a cell of a CSV, stands for: one form of Unicode, and no spaces around it."""
    return unicodedata.normalize("NFC", name).strip()


def folder_labels(folders: Collection[str], labels: Sequence[str], wordnet: Sequence[str]) -> FolderLabels | None:
    """All folders are called in one way: by name, WordNet id or index of a label. None if no folder is called so.

    Case does not matter in names, nor do hyphens and underscores in place of spaces, nor zeros before a number. Numbers
    that may count in several orders are no indices. If labels are numbers, folders have none. What the
    exporter has made up, such as "class 2", is no name: class_2 is an index, as 2 is.
    Raises ValueError if some folders are called so and others are not.
    """
    ways = [FolderLabels("WordNet id", _matched(folders, wordnet, str.lower))]
    if tuple(labels) != numbered(len(labels)):
        ways.insert(0, FolderLabels("name", _matched(folders, labels, _plain)))
    if not any(label.isdecimal() for label in labels):
        ways.append(FolderLabels("index", _by_index(folders, len(labels))))
    best = max(ways, key=lambda way: len(way.classes))
    if not best.classes:
        return None
    if strange := sorted(set(folders) - best.classes.keys()):
        raise ValueError(
            f"{len(best.classes)} of {len(folders)} folders are called by the {best.by} of one label, but not "
            f"{', '.join(strange[:3])}{' and others' if len(strange) > 3 else ''}"
        )
    return best


def _by_index(folders: Collection[str], classes: int) -> dict[str, int]:
    """The index of the class by the name of a folder, where that is a number and every order gives the same.

    Class 2 of twelve is the folder "10" for torchvision, which sorts names as text, and "2" for timm. The numbers may
    begin at 1, and the word "class" may stand before them.
    """
    digits = {name: _number(name) for name in folders}
    if not folders or not all(text.isascii() and text.isdecimal() for text in digits.values()):
        return _matched(folders, [str(index) for index in range(classes)], _index)
    numbers = {name: int(text) for name, text in digits.items()}
    width = max(map(len, digits.values())) if any(text[0] == "0" and len(text) > 1 for text in digits.values()) else 1
    found: set[tuple[int, ...]] = set()
    for first in (0, 1):
        if min(numbers.values()) >= first and max(numbers.values()) < first + classes:
            text = {number: f"{number:0{width}}" for number in range(first, first + classes)}
            text |= {number: digits[name] for name, number in numbers.items()}
            as_text = sorted(text, key=text.__getitem__)
            found.add(tuple(number - first for number in numbers.values()))
            found.add(tuple(as_text.index(number) for number in numbers.values()))
    if not found:
        return _matched(folders, [str(index) for index in range(classes)], _index)
    return dict(zip(numbers, found.pop(), strict=True)) if len(found) == 1 else {}


def _matched(folders: Collection[str], ids: Sequence[str], plain: Callable[[str], str]) -> dict[str, int]:
    """Folders that are called by exactly one of `ids`, in one form or else once both are `plain`."""
    ids = [*map(label_of, ids)]
    exactly, plainly = _places(ids), _places([plain(id) for id in ids])
    called = {folder: label_of(folder) for folder in folders}
    found = {folder: exactly.get(name, plainly.get(plain(name))) for folder, name in called.items()}
    return {folder: index for folder, index in found.items() if index is not None}


def _places(ids: Sequence[str]) -> dict[str, int]:
    count = Counter(ids)
    return {id: index for index, id in enumerate(ids) if count[id] == 1}


def _plain(name: str) -> str:
    words = " ".join(label_of(name.casefold()).replace("_", " ").replace("-", " ").split())
    return _without_zeros(words) if words.isdecimal() else words


def _number(name: str) -> str:
    return re.sub(r"^class[ _-]?(?=\d+$)", "", name, flags=re.IGNORECASE)


def _index(name: str) -> str:
    return _without_zeros(_number(name))


def _without_zeros(number: str) -> str:
    return number.lstrip("0") or number[-1:]
