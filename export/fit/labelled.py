"""What a listing of images has, whether it is from folders or from a CSV."""

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from model.checkpoints.checkpoint import first_few

UNLABELLED = ""


class Labelled(NamedTuple):
    file: Path
    label: str


class LeftOut(NamedTuple):
    file: Path
    reason: str


@dataclass(frozen=True, kw_only=True)
class Listing:
    train: tuple[Labelled, ...]  # all images, where `held_out` is None
    held_out: tuple[Labelled, ...] | None  # None: some of `train` are to be chosen
    left_out: tuple[LeftOut, ...] = ()  # files and folders that cannot be used
    notes: tuple[str, ...] = ()  # on what is odd, one sentence each


def unused(place: Path, parts: Iterable[str], used: Sequence[str]) -> list[str]:
    """The note on parts beside those that are used."""
    others = ", ".join(sorted({*parts} - {*used}))
    return [f"{place} has {others} beside {' and '.join(used)}, not used"] if others else []


def checked(listing: Listing) -> Listing:
    """The same, with a note on labels that differ in case alone.

    Raises ValueError if some labels are only in the held-out part.
    """
    labels, judged = ({label for _, label in part or ()} for part in (listing.train, listing.held_out))
    of_case = defaultdict(list)
    for label in sorted(labels | judged):
        of_case[label.casefold()].append(label)
    alike = [f"{' and '.join(same)} are different labels" for same in of_case.values() if len(same) > 1]
    if strange := sorted(judged - labels):
        only = f"the held-out images have labels that no other image has: {first_few(strange)}"
        raise ValueError(". ".join([only, *alike]))
    return dataclasses.replace(listing, notes=(*listing.notes, *alike))
