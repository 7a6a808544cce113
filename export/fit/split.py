"""The division into images to learn from and held-out images: each image once, even if several files have copies."""

import hashlib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from export.fit.listing import Labelled, Listing

SHARE = 10  # one image of 10 is held out


class LeftOut(NamedTuple):
    file: Path
    reason: str


@dataclass(frozen=True, kw_only=True)
class Split:
    train: tuple[Labelled, ...]
    held_out: tuple[Labelled, ...]
    chosen: bool  # whether the held-out images were chosen here, and not given
    copies: tuple[Path, ...]  # files that are not used, because they are copies of others
    across: int  # how many of them would have been learned from, although the image is held out
    left_out: tuple[LeftOut, ...]


def split(listing: Listing, *, seed: int) -> Split:
    """Every image of `listing` once. If none is held out there, a tenth of each label is, and at least one of two.

    Copies are files of the same bytes. An image is held out if one of its copies is. Which images are chosen depends on
    their bytes and the seed alone: not on their names, nor on other labels.
    Images that cannot be read, or that have several labels, are left out.
    """
    left_out: list[LeftOut] = []
    given = [(image, False) for image in listing.train] + [(image, True) for image in listing.held_out or ()]
    groups: dict[bytes, list[tuple[Labelled, bool]]] = defaultdict(list)
    for image, held_out in given:
        try:
            with image.file.open("rb") as content:
                groups[hashlib.file_digest(content, "sha256").digest()].append((image, held_out))
        except OSError as error:
            left_out.append(LeftOut(image.file, error.strerror or str(error)))
    unique: dict[bytes, tuple[Labelled, bool]] = {}
    copies: list[Path] = []
    across = 0
    for digest, group in groups.items():
        labels = sorted({image.label for image, _ in group})
        if len(labels) > 1:
            reason = f"the same file has the labels {' and '.join(labels)}"
            left_out += [LeftOut(image.file, reason) for image, _ in group]
            continue
        kept, *others = sorted(group, key=lambda entry: not entry[1])  # one that is held out, if there is one
        unique[digest] = kept
        copies += [image.file for image, _ in others]
        across += sum(kept[1] and not held_out for _, held_out in others)
    if chosen := listing.held_out is None:
        held = _choose({digest: image.label for digest, (image, _) in unique.items()}, seed=seed)
        unique = {digest: (image, digest in held) for digest, (image, _) in unique.items()}
    return Split(
        train=tuple(image for image, held_out in unique.values() if not held_out),
        held_out=tuple(image for image, held_out in unique.values() if held_out),
        chosen=chosen,
        copies=tuple(copies),
        across=across,
        left_out=tuple(left_out),
    )


def _choose(labels: dict[bytes, str], *, seed: int) -> set[bytes]:
    """A tenth of each label, by digest. Raises ValueError if there is nothing to choose from."""
    of_label: dict[str, list[bytes]] = defaultdict(list)
    for digest, label in labels.items():
        of_label[label].append(digest)
    chosen: set[bytes] = set()
    for digests in of_label.values():
        count = max(round(len(digests) / SHARE), 1) if len(digests) > 1 else 0
        chosen |= set(sorted(digests, key=lambda digest: hashlib.sha256(b"%d %b" % (seed, digest)).digest())[:count])
    if not chosen:
        raise ValueError("no label has two images that can be read, so none can be held out")
    return chosen
