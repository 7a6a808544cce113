"""A person's own images: read from a folder, and prepared by the service's own code."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import NamedTuple, TypeVar

import numpy as np

from app.errors import UnsupportedType, UnusableImage
from app.images.colors import upright_rgb
from app.images.decode import Limits, opened
from app.images.preprocess import ImageSpec, preprocess
from app.images.source import read_file
from app.inference.engine import Pixels
from app.machine import allowed_cores
from app.settings import Settings
from export.folder_labels import folder_labels
from export.image_spec import image_spec
from export.images import Images
from export.masks import about_masks
from export.messages import warn
from export.parts import folders_in, parts_of
from export.place import check_folder
from export.walk import SUFFIXES, walk
from model.checkpoints.checkpoint import Checkpoint, first_few
from model.progress import track

MOST, MOST_BYTES = 2048, 2**29  # prepared images in memory
FEWEST, ENOUGH = 2, 32  # of one, none would be left to compare; with fewer than 32, figures say little
MOST_RANGES, RANGES_SHARE = 64, 4  # one image of 4 is for ranges
ENOUGH_RANGES = 24  # images; of fewer than four times as many, half are for ranges
SEED = 7
T = TypeVar("T")
LIMITS = Limits(max_pixels=Settings.model_fields["max_image_pixels"].default)


def read_folder(folder: Path, checkpoint: Checkpoint) -> Images:
    """Some images in `folder` and in folders below it, chosen evenly in the order of their names, and then in a random
    order: both are the same each time. A file that cannot be decoded is named on stderr and skipped.

    They have labels if the folders in `folder` are called by those of the checkpoint, and then every image must be in
    one of these folders. Of a data set in parts, as `fit` takes it, the held-out part is read. stderr says at once
    which, and why images have no labels.
    Raises ValueError when images are too few, or some folders are labels and others are not.
    """
    check_folder(folder, "--pictures")
    folder = _part(folder, checkpoint)
    files = image_files(folder)
    parts = {file: file.parts[len(folder.parts) :] for file in files}
    folders = {of_file[0] for of_file in parts.values() if len(of_file) > 1}
    labels = folder_labels(folders, checkpoint.labels, checkpoint.wordnet)
    if labels and (stray := [file.name for file, of_file in parts.items() if len(of_file) == 1]):
        raise ValueError(f"--pictures {folder}: folders are labels, but {stray[0]} is in none of them")
    unlabelled = ""
    if folders and checkpoint.labels and not labels:
        unlabelled = f"no folder in {folder} is called by a label of the model: {first_few(sorted(folders))}"
        if all(name.isdecimal() for name in folders):
            unlabelled += ", and numbers may be those of labels in several orders"
        warn(f"The images have no labels, as {unlabelled}.")
    for note in about_masks(folder, files):
        warn(f"{note}.")
    spec = image_spec(checkpoint.preprocessing)
    pixels: list[Pixels] = []
    seen: list[float] = []  # shares of images
    used: list[Path] = []
    most = min(MOST, max(ENOUGH, MOST_BYTES // (3 * spec.size[0] * spec.size[1])))  # that fit in memory
    chosen = evenly(files, most)
    order = np.random.default_rng(SEED).permutation(len(chosen))
    for file, image in decoded([chosen[place] for place in order], spec):
        if isinstance(image, str):
            warn(f"{file} is skipped: {image}")
            continue
        pixels.append(image.pixels)
        seen.append(image.seen)
        used.append(file)
    if len(pixels) < FEWEST:
        raise ValueError(
            f"--pictures {folder}: it has {len(pixels)} images that can be decoded, and {FEWEST} are needed"
        )
    if len(pixels) < ENOUGH:
        warn(
            f"Warning: {len(pixels)} images are few: ranges may be too narrow, and figures say little. Take at least "
            f"{ENOUGH}, better a few hundred."
        )
    ranges = min(MOST_RANGES, max(len(pixels) // RANGES_SHARE, min(ENOUGH_RANGES, len(pixels) // 2)))
    return Images(
        source="folder",
        ranges=np.stack(pixels[:ranges]),
        judged=np.stack(pixels[ranges:]),
        files=tuple(used),
        labels=np.array([labels.classes[parts[file][0]] for file in used[ranges:]]) if labels else None,
        summary=f"{len(files):,} files; {len(pixels):,} are used, {ranges} for ranges and {len(pixels) - ranges:,} to "
        f"compare answers" + (f", labelled by folders ({labels.by})" if labels else ""),
        unlabelled=unlabelled,
        seen=fmean(seen),
    )


def image_files(folder: Path) -> list[Path]:
    """Those in `folder` and below that are called as images, in the order of names. stderr says what is skipped."""
    found, repeated, unread = walk(folder)
    for path, reason in (repeated | unread).items():
        warn(f"{path} is skipped: {reason}")
    return [file for file in found if file.suffix.lower() in SUFFIXES]


def evenly(found: Sequence[T], most: int) -> list[T]:
    """In their order, and no more than `most`."""
    return [found[place] for place in np.linspace(0, len(found) - 1, min(most, len(found))).round().astype(int)]


def _part(folder: Path, checkpoint: Checkpoint) -> Path:
    """The part of a data set that a model is judged with; `folder` itself where it has none, or no label matters."""
    names = [path.name for path in folders_in(folder)]
    if not checkpoint.labels or folder_labels(names, checkpoint.labels, checkpoint.wordnet):
        return folder
    parts = None
    with suppress(ValueError):  # images without labels are enough here
        parts = parts_of(folder, labelled=True)
    part = parts and (parts.held_out or parts.train)
    if not (parts and part and folders_in(folder / part)):
        return folder
    others = sorted({parts.train, *parts.flat, *parts.others} - {part})
    warn(f"--pictures {folder}: {part} is read" + (f", and not {first_few(others)}" if others else ""))
    return folder / part


class Decoded(NamedTuple):
    pixels: Pixels  # the network's input in the service with its default limits, uint8 (height, width, 3)
    seen: float  # the share of the image that the crop leaves


def decoded(files: Sequence[Path], spec: ImageSpec) -> Iterator[tuple[Path, Decoded | str]]:
    """Each file, decoded, or the reason why it cannot be."""
    with ThreadPoolExecutor(allowed_cores()) as pool:  # Pillow works without Python's lock
        found = pool.map(partial(_decoded, spec=spec), files)
        yield from zip(files, track(found, "reading images", of=len(files)), strict=True)


def _decoded(file: Path, spec: ImageSpec) -> Decoded | str:
    try:
        with opened(read_file(file), LIMITS) as (image, _):
            upright = upright_rgb(image)
            pixels, box = preprocess(upright, spec)
            area = (box.right - box.left) * (box.bottom - box.top)
            return Decoded(pixels, area / (upright.width * upright.height))
    except (UnsupportedType, UnusableImage) as error:
        return error.detail
    except OSError as error:
        return error.strerror or str(error)
