"""The parts of a data set in a folder: `train` and `val`, each with a folder for each label."""

import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from export.walk import OF_SYSTEMS
from model.checkpoints.checkpoint import first_few

TRAIN, HELD_OUT = "train", "val"
# Names of folders and of parts of a CSV, in any case; the first that is there.
TRAIN_NAMES = (TRAIN, "training")
HELD_OUT_NAMES = (HELD_OUT, "valid", "validation", "test", "testing")
# As in seg_train, test1, trainA, training_set, val_images and HAM10000_images_part_1, and images beside masks.
KIND = "train|test|val|valid|validation|eval|dev|pred|hold_?out|held_?out"
PART = re.compile(
    rf"(seg_)?({KIND})(ing)?([ _-]?(set|data|images?|imgs?))?(\d*|[ab])|(.+[ _-])?part[ _-]?\d+"
    "|images?|imgs?|masks?|annotations?|ground_?truth"
)


class Parts(NamedTuple):
    train: str  # names of folders
    held_out: str | None
    flat: list[str]  # held-out parts without folders of labels
    others: set[str]


def parts_of(folder: Path, *, labelled: bool) -> Parts | None:
    """The parts that the folders in `folder` are, or None if they are labels.

    Raises ValueError for folders that are called like parts, and not as they have to be.
    """
    inside = {path.name.casefold(): path.name for path in folders_in(folder)}
    learned = first_of(TRAIN_NAMES, inside)
    flat = [name for name in HELD_OUT_NAMES if name in inside and labelled and not folders_in(folder / inside[name])]
    held_out = first_of(HELD_OUT_NAMES, inside.keys() - flat)
    divided = learned and (held_out or flat)
    if labelled and len(inside) > 1 and not divided and all(map(PART.fullmatch, inside)):
        raise ValueError(
            f"{folder}: {first_few(sorted(inside.values()))} are names of parts of a data set, not of labels. "
            f"Call the parts {TRAIN} and {HELD_OUT}, with a folder for each label in them, or give the folder of the "
            "labels"
        )
    if learned is None or not (divided or len(inside) == 1):
        return None
    used = [part for part in (learned, held_out) if part]
    others = {name for part, name in inside.items() if part not in (*used, *flat)}
    return Parts(inside[learned], inside[held_out] if held_out else None, [inside[name] for name in flat], others)


def folders_in(folder: Path) -> list[Path]:
    inside = (path for path in folder.iterdir() if not path.name.startswith(".") and path.name not in OF_SYSTEMS)
    return sorted(path for path in inside if path.is_dir())


def first_of(names: Iterable[str], known: Collection[str]) -> str | None:
    return next((name for name in names if name in known), None)
