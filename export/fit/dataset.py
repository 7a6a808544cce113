"""A person's labelled images as arrays of pixels: those to learn from, and those that are held out."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from statistics import fmean

import torch
from torch import Tensor

from app.images.preprocess import ImageSpec
from export.fit.labelled import UNLABELLED, LeftOut
from export.fit.split import Split, Unique, choose
from export.folder import decoded
from export.messages import warn
from model.checkpoints.checkpoint import first_few
from model.fit.groups import near_copies
from model.fit.samples import Samples


@dataclass(frozen=True, kw_only=True)
class Part:
    files: tuple[Path, ...]
    samples: Samples  # of the files, their pixels a map of one file and their classes indices of labels
    groups: Tensor  # int64 (N,), of near-copies, numbered alike in all parts


@dataclass(frozen=True, kw_only=True)
class Dataset:
    labels: tuple[str, ...]  # in the order of their names; none if images have no labels
    train: Part
    held_out: Part
    left_out: tuple[LeftOut, ...]  # files and folders that cannot be used
    chosen: bool  # whether the held-out images were chosen here, and not given
    seen: float  # the share of an image that the crop leaves, in the mean

    def count(self, part: Part) -> dict[str, int]:
        found = Counter(part.samples.classes.tolist())
        return {label: found[index] for index, label in enumerate(self.labels)}


def read_dataset(
    images: Split,
    *,
    seed: int,
    train: ImageSpec,
    held_out: ImageSpec,
    folder: Path,
    features: Callable[[Tensor], Tensor] | None,
    strict: bool = False,
) -> Dataset:
    """The pixels of both parts, each prepared by the service's code for its spec, in files in `folder`.

    Held-out images that are not given are chosen among those that can be decoded: a tenth of each label, by `seed`, and
    near-copies together. They are known by their names, and by `features` (n, F) of pixels where there are any. A file
    that cannot be used is named on stderr; with `strict` it is an error.
    Raises ValueError if a label is left without an image to learn from, or a part without any image.
    """
    left_out, shares = [*images.left_out], list[float]()
    files = folder / "train.pixels", folder / "held_out.pixels"
    learned = _read(images.train, train, files[0], left_out, shares)
    judged = _read(images.held_out or (), held_out, files[1], left_out, shares)
    for file, reason in left_out:
        warn(f"{file} is left out: {reason}")
    if strict and left_out:
        raise ValueError(f"--strict: images that cannot be used, named above: {len(left_out):,}")
    readable = [*learned, *judged]
    row = {image.digest: number for number, image in enumerate(readable)}
    index = {label: place for place, label in enumerate(sorted({image.label for image in readable}))}
    classes = torch.tensor([index[image.label] for image in readable], dtype=torch.int64)
    parts = [(files[0], train, learned), (files[1], held_out, judged)]
    read = features and [features(_mapped(file, spec)) for file, spec, part in parts if part]
    vectors = torch.cat(read) if read else torch.zeros(len(readable), 1)  # none is like another
    groups = near_copies(vectors, classes, [image.file for image in readable])
    if images.held_out is None:
        chosen = choose(learned, groups.tolist(), seed=seed)
        judged = [image for image in learned if image.digest in chosen]
        _move([image.digest in chosen for image in learned], *files)
        learned = [image for image in learned if image.digest not in chosen]
        if train != held_out:
            judged = _read(judged, held_out, files[1], left_out, shares)
    labels = tuple(sorted({image.label for image in learned}))
    for label in sorted({image.label for image in images.listed} - {*labels, UNLABELLED}):
        raise ValueError(f"the label {label} has no image to learn from{_fate(label, images, judged, left_out)}")
    if not judged and images.held_out is None:
        raise ValueError(
            f"no label has two images to read, copies left aside, so none can be held out{_reasons(left_out)}"
        )
    for part, what in ((learned, "to learn from"), (judged, "to hold out")):
        if not part:
            raise ValueError(f"there are no images {what}{_reasons(left_out)}")

    def part_of(part: Sequence[Unique], file: Path, spec: ImageSpec) -> Part:
        places = torch.tensor([row[image.digest] for image in part])
        samples = Samples(
            pixels=_mapped(file, spec),
            classes=classes[places],
            digest=sha256(b"".join(image.digest for image in part)).hexdigest(),
            groups=groups[places],
            features=vectors[places] if read else None,
        )
        return Part(files=tuple(image.file for image in part), samples=samples, groups=groups[places])

    return Dataset(
        labels=() if labels == (UNLABELLED,) else labels,
        train=part_of(learned, files[0], train),
        held_out=part_of(judged, files[1], held_out),
        left_out=tuple(left_out),
        chosen=images.held_out is None,
        seen=fmean(shares),
    )


def _read(
    images: Sequence[Unique], spec: ImageSpec, file: Path, left_out: list[LeftOut], seen: list[float]
) -> list[Unique]:
    """The images that can be decoded. Their pixels are written to the file one after the other, so that a disk that is
    full is an error here, and not a crash when a mapped page has no place.
    """
    kept: list[Unique] = []
    with file.open("wb") as out:
        for image, (_, found) in zip(images, decoded([image.file for image in images], spec), strict=True):
            if isinstance(found, str):
                left_out.append(LeftOut(image.file, found))
            else:
                kept.append(image)
                seen.append(found.seen)
                out.write(found.pixels.tobytes())
    return kept


def _move(moves: Sequence[bool], file: Path, other: Path) -> None:
    """Some images from one file to another, each in place, as the disk may not have room for all of them twice."""
    size = file.stat().st_size // max(1, len(moves))
    with file.open("r+b") as kept, other.open("wb") as moved:
        end = 0
        for number, moves_on in enumerate(moves):
            kept.seek(number * size)
            pixels = kept.read(size)
            if moves_on:
                moved.write(pixels)
                continue
            kept.seek(end)
            end += kept.write(pixels)
        kept.truncate(end)


def _mapped(file: Path, spec: ImageSpec) -> Tensor:
    """Pixels uint8 (n, height, width, 3)."""
    size = file.stat().st_size
    return torch.from_file(str(file), shared=False, size=size, dtype=torch.uint8).view(-1, *spec.size, 3)


def _fate(label: str, images: Split, judged: Sequence[Unique], left_out: Sequence[LeftOut]) -> str:
    """What became of all files of a label."""
    files = {image.file for image in images.listed if image.label == label}
    held_out = sum(image.label == label for image in judged)
    held = f", and {held_out:,} held-out images" if held_out else ""
    return f"{_reasons([left for left in left_out if left.file in files])}. It has {len(files):,} files{held}"


def _reasons(left_out: Sequence[LeftOut]) -> str:
    return ": " + first_few([f"{file} is left out ({reason})" for file, reason in left_out]) if left_out else ""
