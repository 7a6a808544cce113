"""Images with their labels: a folder for each label, `train` and `val` with such folders inside, or a CSV."""

import csv
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from export.folder import SUFFIXES, visible_files
from export.place import check_labelled_images
from model.checkpoints.tensors import first_few

TRAIN, HELD_OUT = "train", "val"
# Names of folders, in any case; the first that is there.
TRAIN_NAMES = (TRAIN, "training")
HELD_OUT_NAMES = (HELD_OUT, "valid", "validation", "test", "testing")
COLUMNS = ("file", "label", "split")
UNLABELLED = ""


class Labelled(NamedTuple):
    file: Path
    label: str


@dataclass(frozen=True, kw_only=True)
class Listing:
    train: tuple[Labelled, ...]  # all images, where `held_out` is None
    held_out: tuple[Labelled, ...] | None  # None: some of `train` are to be chosen
    notes: tuple[str, ...] = ()  # on files that are not used, one sentence each


def list_images(images: Path, *, labelled: bool = True) -> Listing:
    """The images in a folder, or of a CSV with the columns `file` and `label` and perhaps `split` (train or val).

    In a folder an image has the name of the first folder below as its label, however deep it lies in it. Files in a CSV
    are relative to its folder. Unless `labelled`, images have the label "", and may lie in no folder.
    Raises ValueError, with the reason.
    """
    check_labelled_images(images)
    if images.is_dir():
        return _of_folder(images, labelled=labelled)
    return _of_csv(images, labelled=labelled)


def _of_folder(folder: Path, *, labelled: bool) -> Listing:
    inside = {path.name.casefold(): path.name for path in _folders(folder)}
    learned, held_out = (
        next((inside[name] for name in names if name in inside), None) for names in (TRAIN_NAMES, HELD_OUT_NAMES)
    )
    if learned is None or not (held_out or len(inside) == 1):
        return _part(folder, labelled=labelled)
    train = _part(folder / learned, labelled=labelled)
    if held_out is None:
        return train
    other = _part(folder / held_out, labelled=labelled)
    unused = sorted({*inside.values()} - {learned, held_out})
    notes = [f"{folder} has {', '.join(unused)} beside {learned} and {held_out}, not used"] if unused else []
    return _checked(Listing(train=train.train, held_out=other.train, notes=(*train.notes, *other.notes, *notes)))


def _part(folder: Path, *, labelled: bool) -> Listing:
    """Every image in `folder` and below, in the order of names, and what else is there."""
    found: list[Labelled] = []
    others: Counter[str] = Counter()
    for file in sorted(visible_files(folder)):
        if file.suffix.lower() not in SUFFIXES:
            others[file.suffix.lower() or "none"] += 1
            continue
        parts = file.relative_to(folder).parts
        if labelled and len(parts) == 1:
            raise ValueError(f"{file} is in no folder below {folder}; the name of that folder would be its label")
        found.append(Labelled(file, parts[0] if labelled else UNLABELLED))
    notes = []
    if others:
        kinds = ", ".join(f"{suffix} ({count:,})" for suffix, count in others.most_common())
        notes.append(f"{folder}: files that do not have the suffix of an image are not tried: {kinds}")
    labels = {label for _, label in found}
    if empty := [path.name for path in _folders(folder) if path.name not in labels] if labelled else []:
        notes.append(f"{folder}: there are no images in {', '.join(empty)}")
    if not found:
        raise ValueError(". ".join([f"{folder} has no images", *notes]))
    return Listing(train=tuple(found), held_out=None, notes=tuple(notes))


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))


def _of_csv(path: Path, *, labelled: bool) -> Listing:
    needed = COLUMNS[:2] if labelled else COLUMNS[:1]
    parts: dict[str, list[Labelled]] = {TRAIN: [], HELD_OUT: []}
    try:
        with path.open(encoding="utf-8-sig", newline="") as text:
            rows = csv.DictReader(text, strict=True)
            columns = {name.strip().lower(): name for name in rows.fieldnames or ()}
            if absent := [name for name in needed if name not in columns]:
                raise ValueError(f"its first line is {', '.join(columns) or 'empty'}; it lacks {' and '.join(absent)}")
            for row in rows:
                cells = {name: (row[column] or "").strip() for name, column in columns.items()}
                if empty := [name for name in (*needed, "split") if cells.get(name) == ""]:
                    raise ValueError(f"line {rows.line_num}: {empty[0]} is empty")
                part = cells.get("split", TRAIN)
                if part not in parts:
                    raise ValueError(f"line {rows.line_num}: split is {part!r}, and not {TRAIN} or {HELD_OUT}")
                label = cells["label"] if labelled else UNLABELLED
                parts[part].append(Labelled(path.parent / cells["file"], label))
    except (OSError, UnicodeDecodeError, csv.Error, ValueError) as error:
        reason = "it is not text in UTF-8" if isinstance(error, UnicodeDecodeError) else error
        raise ValueError(f"--images {path}: {reason}") from None
    if not parts[TRAIN]:
        raise ValueError(f"--images {path}: it lists no images to learn from")
    return _checked(Listing(train=tuple(parts[TRAIN]), held_out=tuple(parts[HELD_OUT]) or None))


def _checked(listing: Listing) -> Listing:
    """The same. Raises ValueError if some labels are only in the held-out part."""
    if strange := sorted({label for _, label in listing.held_out or ()} - {label for _, label in listing.train}):
        raise ValueError(f"the held-out images have labels that no other image has: {first_few(strange)}")
    return listing
