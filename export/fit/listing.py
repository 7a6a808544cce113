"""Images with their labels: a folder for each label, `train` and `val` with such folders inside, or a CSV."""

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from export.fit.labelled import UNLABELLED, Labelled, LeftOut, Listing, checked, unused
from export.fit.table import of_csv
from export.folder_labels import label_of
from export.masks import about_masks
from export.parts import HELD_OUT, TRAIN, folders_in, parts_of
from export.place import check_labelled_images
from export.walk import SUFFIXES, walk
from model.checkpoints.checkpoint import first_few


def list_images(images: Path, *, labelled: bool = True) -> Listing:
    """The images in a folder, or of a CSV with the columns `file` and `label` and perhaps `split` (train or val).

    In a folder an image has the name of the first folder below as its label, however deep it lies in it. Unless
    `labelled`, images have the label "", and may lie in no folder. Raises ValueError, with the reason.
    """
    check_labelled_images(images)
    if images.is_dir():
        return _of_folder(images, labelled=labelled)
    return of_csv(images, labelled=labelled)


def _of_folder(folder: Path, *, labelled: bool) -> Listing:
    parts = parts_of(folder, labelled=labelled)
    if parts is None:
        return checked(_checked_levels(folder, _part(folder, labelled=labelled)))
    learned, held_out = parts.train, parts.held_out
    train = _checked_levels(folder / learned, _part(folder / learned, labelled=labelled))
    notes = [f"{folder / name} has no folders of labels, not used" for name in parts.flat]
    used = [part for part in (learned, held_out) if part]
    train = replace(train, notes=(*train.notes, *notes, *unused(folder, {*used, *parts.others}, used)))
    if held_out is None:
        return checked(train)
    judged = _part(folder / held_out, labelled=labelled)
    return checked(
        Listing(
            train=train.train,
            held_out=judged.train,
            left_out=(*train.left_out, *judged.left_out),
            notes=(*train.notes, *judged.notes),
        )
    )


def _part(folder: Path, *, labelled: bool) -> Listing:
    """Every image in `folder` and below, in the order of names, and what else is there."""
    found: list[Labelled] = []
    others: Counter[str] = Counter()
    files, repeated, unread = walk(folder)
    left_out = [LeftOut(_readable(path), reason) for path, reason in unread.items()]
    for file in files:
        if file.suffix.lower() not in SUFFIXES:
            others[file.suffix.lower() or "none"] += 1
            continue
        parts = file.parts[len(folder.parts) :]
        if labelled and len(parts) == 1:
            raise ValueError(f"{file} is in no folder below {folder}; the name of that folder would be its label")
        if (name := _readable(file)) != file:
            left_out.append(LeftOut(name, "its name is not text in UTF-8"))
        else:
            found.append(Labelled(file, label_of(parts[0]) if labelled else UNLABELLED))
    notes = [f"{_readable(path)} is not followed: {reason}" for path, reason in repeated.items()]
    if others:
        kinds = ", ".join(f"{suffix} ({count:,})" for suffix, count in others.most_common())
        notes.append(f"{folder}: files that do not have the suffix of an image are not tried: {kinds}")
    if labelled:
        labels = {label for _, label in found}
        names = [_readable(path).name for path in folders_in(folder)]
        if empty := [name for name in names if label_of(name) not in labels]:
            notes.append(f"{folder}: there are no images in {', '.join(empty)}")
        notes += [*_odd_folders(folder, found), *about_masks(folder, [file for file, _ in found])]
    if not found:
        reasons = [f"{path} is left out: {reason}" for path, reason in left_out]
        raise ValueError(". ".join([f"{folder} has no images", *notes, *reasons[:3]]))
    return Listing(train=tuple(found), held_out=None, left_out=tuple(left_out), notes=tuple(notes))


def _odd_folders(folder: Path, images: Iterable[Labelled]) -> Iterator[str]:
    """Notes on folders that have one label together, and on labels that may lie one level deeper."""
    called: dict[str, set[str]] = defaultdict(set)
    inside: dict[str, set[str]] = defaultdict(set)  # names of folders, and "" for an image in none
    for file, label in images:
        name, *below, _ = file.parts[len(folder.parts) :]
        called[label].add(name)
        inside[label].add(below[0] if below else "")
    for label, names in called.items():
        if len(names) > 1:
            yield f"{folder}: the folders {' and '.join(map(repr, sorted(names)))} have one label, {label!r}"
    common = set[str]().union(*inside.values()).intersection(*inside.values())
    if len(inside) > 1 and len(common) > 1 and "" not in common:
        yield (
            f"{folder}: all labels have the folders {first_few(sorted(common))}. If these are the labels, call the "
            f"folders in {folder} {TRAIN} and {HELD_OUT}"
        )


def _checked_levels(folder: Path, listing: Listing) -> Listing:
    """The same. Raises ValueError if there is one label alone, with the folder that may have been meant."""
    labels = {label for _, label in listing.train} - {UNLABELLED}
    if len(labels) != 1:
        return listing
    lies = Path(os.path.commonpath([image.file.parent for image in listing.train]))
    inside = {image.file.parts[len(lies.parts) :][0] for image in listing.train if image.file.parent != lies}
    hint = f". If {first_few(sorted(inside))} in {lies} are the labels, give {lies}" if inside else ""
    raise ValueError(f"the only label in {folder} is {min(labels)}, and two are needed{hint}")


def _readable(path: Path) -> Path:
    """The path, with escapes in place of bytes that are not text in UTF-8."""
    return Path(str(path).encode(errors="backslashreplace").decode())
