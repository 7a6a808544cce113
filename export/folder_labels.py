"""The class that each folder of FOLDER/label/image.jpg stands for; torchvision calls this form ImageFolder."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Literal, NamedTuple

By = Literal["name", "WordNet id", "index"]


class FolderLabels(NamedTuple):
    by: By  # what the folders are called by
    classes: dict[str, int]  # index of the label by the name of a folder


def folder_labels(folders: Collection[str], labels: Sequence[str], wordnet: Sequence[str]) -> FolderLabels | None:
    """All folders are called in one way: by name, WordNet id or index of a label. None if no folder is called so.

    Case does not matter in names, nor do hyphens and underscores in place of spaces.
    Raises ValueError if some folders are called so and others are not.
    """
    indices = [str(index) for index in range(len(labels))]
    ways = [
        FolderLabels("name", _matched(folders, labels, _plain)),
        FolderLabels("WordNet id", _matched(folders, wordnet, str.lower)),
        FolderLabels("index", _matched(folders, indices, lambda name: name.lstrip("0") or name[-1:])),
    ]
    best = max(ways, key=lambda way: len(way.classes))
    if not best.classes:
        return None
    if strange := sorted(set(folders) - best.classes.keys()):
        raise ValueError(
            f"{len(best.classes)} of {len(folders)} folders are called by the {best.by} of one label, but not "
            f"{', '.join(strange[:3])}{' and others' if len(strange) > 3 else ''}"
        )
    return best


def _matched(folders: Collection[str], ids: Sequence[str], plain: Callable[[str], str]) -> dict[str, int]:
    """Folders that are called by exactly one of `ids`, as it is or else once both are `plain`."""
    exactly, plainly = _places(ids), _places([plain(id) for id in ids])
    found = {folder: exactly.get(folder, plainly.get(plain(folder))) for folder in folders}
    return {folder: index for folder, index in found.items() if index is not None}


def _places(ids: Sequence[str]) -> dict[str, int]:
    count = Counter(ids)
    return {id: index for index, id in enumerate(ids) if count[id] == 1}


def _plain(name: str) -> str:
    return " ".join(name.casefold().replace("_", " ").replace("-", " ").split())
