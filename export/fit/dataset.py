"""A person's labelled images as arrays of pixels: those to learn from, and those that are held out."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from app.images.preprocess import ImageSpec
from export.fit.listing import UNLABELLED, Labelled
from export.fit.split import LeftOut, Split
from export.folder import decoded
from model.fit.samples import Samples


@dataclass(frozen=True, kw_only=True)
class Part:
    files: tuple[Path, ...]
    samples: Samples  # of the files, their pixels a map of one file and their classes indices of labels


@dataclass(frozen=True, kw_only=True)
class Dataset:
    labels: tuple[str, ...]  # in the order of their names; none if images have no labels
    train: Part
    held_out: Part
    left_out: tuple[LeftOut, ...]  # images that cannot be used

    def count(self, part: Part) -> dict[str, int]:
        found = Counter(part.samples.classes.tolist())
        return {label: found[index] for index, label in enumerate(self.labels)}


def read_dataset(images: Split, *, train: ImageSpec, held_out: ImageSpec, folder: Path) -> Dataset:
    """The pixels of both parts, each prepared by the service's code for its spec, in files in `folder`.

    Raises ValueError if a label is left without an image to learn from, or a part without any image.
    """
    left_out: list[LeftOut] = []
    learned = _read(images.train, train, folder / "train.pixels", left_out)
    judged = _read(images.held_out, held_out, folder / "held_out.pixels", left_out)
    for part, what in ((learned, "to learn from"), (judged, "to hold out")):
        if not part[0]:
            raise ValueError(f"there are no images {what}; files that cannot be decoded: {len(left_out):,}")
    labels = tuple(sorted({image.label for image in learned[0]}))
    if lost := sorted({image.label for image in (*images.train, *images.held_out)} - set(labels)):
        raise ValueError(f"the label {lost[0]} has no image to learn from")
    index = {label: place for place, label in enumerate(labels)}
    parts = [
        Part(
            files=tuple(image.file for image in kept),
            samples=Samples(pixels=pixels, classes=torch.tensor([index[image.label] for image in kept])),
        )
        for kept, pixels in (learned, judged)
    ]
    return Dataset(
        labels=() if labels == (UNLABELLED,) else labels,
        train=parts[0],
        held_out=parts[1],
        left_out=(*images.left_out, *left_out),
    )


def _read(
    images: Sequence[Labelled], spec: ImageSpec, file: Path, left_out: list[LeftOut]
) -> tuple[list[Labelled], Tensor]:
    """The images that can be decoded, and their pixels. They are written one after the other, so that a disk that is
    full is an error here, and not a crash when a mapped page has no place.
    """
    kept: list[Labelled] = []
    with file.open("wb") as out:
        for image, (_, found) in zip(images, decoded([image.file for image in images], spec), strict=True):
            if isinstance(found, str):
                left_out.append(LeftOut(image.file, found))
            else:
                kept.append(image)
                out.write(found.tobytes())
    size = file.stat().st_size
    return kept, torch.from_file(str(file), shared=False, size=size, dtype=torch.uint8).view(-1, *spec.size, 3)
