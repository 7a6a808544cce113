"""The division into images to learn from and held-out images: each image once, even if several files have copies."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from app.images.source import open_file
from export.fit.labelled import Labelled, LeftOut, Listing

SHARE = 10  # one image of 10 is held out


class Unique(NamedTuple):
    """One of the files with these bytes."""

    file: Path
    label: str
    digest: bytes


@dataclass(frozen=True, kw_only=True)
class Split:
    train: tuple[Unique, ...]  # all images, where `held_out` is None
    held_out: tuple[Unique, ...] | None  # None: some of `train` are to be chosen, once it is known which are broken
    listed: tuple[Labelled, ...] = ()  # all files
    copies: tuple[Path, ...] = ()  # files that are not used, because they are copies of others
    across: int = 0  # how many of them would have been learned from, although the image is held out
    left_out: tuple[LeftOut, ...] = ()


def split(listing: Listing) -> Split:
    """Every image of `listing` once.

    Copies are files of the same bytes. An image is held out if one of its copies is. Files that cannot be read, or that
    have several labels, are left out.
    """
    left_out = [*listing.left_out]
    given = [(image, False) for image in listing.train] + [(image, True) for image in listing.held_out or ()]
    groups: dict[bytes, list[tuple[Labelled, bool]]] = defaultdict(list)
    for image, held_out in given:
        try:
            with open_file(image.file) as content:
                groups[hashlib.file_digest(content, "sha256").digest()].append((image, held_out))
        except OSError as error:
            left_out.append(LeftOut(image.file, error.strerror or str(error)))
    unique: list[tuple[Unique, bool]] = []
    copies: list[Path] = []
    across = 0
    for digest, group in groups.items():
        labels = sorted({image.label for image, _ in group})
        if len(labels) > 1:
            reason = f"the same file has the labels {' and '.join(labels)}"
            left_out += [LeftOut(image.file, reason) for image, _ in group]
            continue
        kept, *others = sorted(group, key=lambda entry: not entry[1])  # one that is held out, if there is one
        unique.append((Unique(*kept[0], digest), kept[1]))
        copies += [image.file for image, _ in others]
        across += sum(kept[1] and not held_out for _, held_out in others)
    held = tuple(image for image, is_held in unique if is_held)
    return Split(
        train=tuple(image for image, is_held in unique if not is_held),
        held_out=None if listing.held_out is None else held,
        listed=tuple(image for image, _ in given),
        copies=tuple(copies),
        across=across,
        left_out=tuple(left_out),
    )


def choose(images: Sequence[Unique], groups: Sequence[int], *, seed: int) -> set[bytes]:
    """The digests of those to hold out: a tenth of each label, and at least one of two. A group stays together.

    Which ones depends on their bytes, their groups and the seed alone: not on other labels, nor on their names. Where
    every group has more than a tenth, the smallest is taken.
    """
    of_label: dict[str, dict[int, list[bytes]]] = defaultdict(lambda: defaultdict(list))
    for image, group in zip(images, groups, strict=True):
        of_label[image.label][group].append(image.digest)
    chosen: set[bytes] = set()
    for of_group in of_label.values():
        count = max(round(sum(map(len, of_group.values())) / SHARE), 1)
        ordered = sorted(of_group.values(), key=lambda of: hashlib.sha256(b"%d %b" % (seed, min(of))).digest())
        taken: list[bytes] = []
        for digests in ordered[:-1]:  # one is learned from
            if len(taken) + len(digests) <= count:
                taken += digests
        if not taken and len(ordered) > 1:
            taken = min(ordered, key=len)
        chosen |= {*taken}
    return chosen
