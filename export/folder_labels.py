"""The class that each folder of FOLDER/label/image.jpg stands for; torchvision calls this form ImageFolder."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Literal, NamedTuple

from model.checkpoints.labels import numbered

By = Literal["name", "WordNet id", "index"]
BY_NUMBER, BY_TEXT = "by their numbers", "by their names as text"  # orders of classes


class FolderLabels(NamedTuple):
    by: By  # what the folders are called by
    classes: dict[str, int]  # index of the label by the name of a folder


def label_of(name: str) -> str:
    """The label that a folder's name, or a cell of a CSV, stands for: one form of Unicode, and no spaces around it."""
    return unicodedata.normalize("NFC", name).strip()


def folder_labels(folders: Collection[str], labels: Sequence[str], wordnet: Sequence[str]) -> FolderLabels | None:
    """All folders are called in one way: by name, WordNet id or index of a label. None if no folder is called so.

    Case does not matter in names, nor do hyphens and underscores in place of spaces, nor zeros before a number. Indices
    are a guess if there are several `orders`, and the first counts. If labels are numbers, folders have none. What the
    exporter has made up, such as "class 2", is no name: class_2 is an index, as 2 is.
    Raises ValueError if some folders are called so and others are not.
    """
    ways = [FolderLabels("WordNet id", _matched(folders, wordnet, str.lower))]
    if tuple(labels) != numbered(len(labels)):
        ways.insert(0, FolderLabels("name", _matched(folders, labels, _plain)))
    if not any(label.isdecimal() for label in labels):
        indices = [str(index) for index in range(len(labels))]
        possible = [*orders(folders, len(labels)).values(), _matched(folders, indices, _index)]
        ways.append(FolderLabels("index", possible[0]))
    best = max(ways, key=lambda way: len(way.classes))
    if not best.classes:
        return None
    if strange := sorted(set(folders) - best.classes.keys()):
        raise ValueError(
            f"{len(best.classes)} of {len(folders)} folders are called by the {best.by} of one label, but not "
            f"{', '.join(strange[:3])}{' and others' if len(strange) > 3 else ''}"
        )
    return best


def orders(folders: Collection[str], classes: int) -> dict[str, dict[str, int]]:
    """The index of the class by the name of a folder, in each order that classes called by numbers may have.

    Class 2 of twelve is the folder "10" for torchvision, which sorts names as text, and "2" for timm. The numbers may
    begin at 1, and the word "class" may stand before them. Orders that agree for these folders are one. There is none
    if a folder is not a number, or not a class.
    """
    digits = {name: _number(name) for name in folders}
    if not folders or not all(text.isascii() and text.isdecimal() for text in digits.values()):
        return {}
    numbers = {name: int(text) for name, text in digits.items()}
    width = max(map(len, digits.values())) if any(text[0] == "0" and len(text) > 1 for text in digits.values()) else 1
    found: dict[str, dict[str, int]] = {}
    for first, begins in ((0, ""), (1, ", from 1")):
        if min(numbers.values()) < first or max(numbers.values()) >= first + classes:
            continue
        text = {number: f"{number:0{width}}" for number in range(first, first + classes)}
        text |= {number: digits[name] for name, number in numbers.items()}
        rank = {number: index for index, number in enumerate(sorted(text, key=text.__getitem__))}
        of_order = {BY_NUMBER: {number: number - first for number in text}, BY_TEXT: rank}
        for order, place in of_order.items():
            index = {name: place[number] for name, number in numbers.items()}
            if index not in found.values():
                found[f"{order}{begins}"] = index
    return found


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
