"""What a run and its report say in sentences: the accuracy, and what is odd about the images."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from export.crop import about_crop
from export.fit.dataset import Dataset
from export.fit.labelled import Listing
from export.fit.report.judged import Judged, percent
from export.fit.report.suspects import Suspect
from export.fit.split import Split
from model.checkpoints.checkpoint import Checkpoint, first_few
from model.fit.doubt import CLEAR

UNEVEN = 10  # times as many images of one label as of another are worth a word
FEW = 100  # held-out images
FEW_EACH = 5  # images of a label to learn from: with fewer, nothing can tell how large scores should be


def headline(learned: Checkpoint, judged: Judged | None) -> str:
    figures = learned.figures
    if judged is None:
        return (
            f"It tells the colour of {percent(figures['colour_accuracy'])} of the hidden patches of held-out images. "
            "It has no labels, so it gives embeddings: fine-tune it."
        )
    return (
        f"{percent(figures['top1_accuracy'])} of the {len(judged.files):,} held-out images got the right one of "
        f"{len(judged.labels):,} labels. Of all such images it is between {percent(figures['top1_low'])} and "
        f"{percent(figures['top1_high'])} (95 % interval)."
    )


def notes(
    learned: Checkpoint,
    listing: Listing,
    once: Split,
    dataset: Dataset,
    judged: Judged | None,
    doubted: Sequence[Suspect],
) -> Iterator[str]:
    train, held_out = len(dataset.train.files), len(dataset.held_out.files)
    tenth = "A tenth of each label was held out" if dataset.labels else "A tenth was held out"
    how = tenth if dataset.chosen else "The held-out images were given"
    yield f"{train:,} images were learned from and {held_out:,} held out. {how}."
    if learned.recipe.get("rate", ...) is None:
        yield "Fine-tuning could not add to the probe, so the model is the probe."
    if crop := about_crop(learned.preprocessing, dataset.seen):
        yield crop
    yield from (f"{note}." for note in listing.notes)
    if left_out := [str(file) for file, _ in dataset.left_out]:
        yield f"Images that could not be used: {len(left_out):,} ({first_few(left_out)})."
    if copies := [str(file) for file in once.copies]:
        yield f"Copies of other images, which were not used: {len(copies):,} ({first_few(copies)})."
    if once.across:
        yield f"Copies of held-out images among those to learn from: {once.across:,}."
    yield from _of_near_copies(dataset)
    if judged:
        yield from _of_labels(learned, dataset, judged, doubted)


def near_copies(dataset: Dataset) -> list[list[Path]]:
    """The files of each group of two images or more, the largest group first."""
    groups: dict[int, list[Path]] = {}
    for part in (dataset.train, dataset.held_out):
        for file, group in zip(part.files, part.groups.tolist(), strict=True):
            groups.setdefault(group, []).append(file)
    return sorted((files for files in groups.values() if len(files) > 1), key=len, reverse=True)


def _of_near_copies(dataset: Dataset) -> Iterator[str]:
    found = near_copies(dataset)
    if found:
        yield (
            f"Images that seem to be near-copies of others: {sum(map(len, found)):,}, such as {found[0][0]} and "
            f"{found[0][1]}. Those of one original are left out and held out together."
        )
    judged = dataset.held_out.groups
    if across := int(torch.isin(judged, dataset.train.groups).sum()):
        yield (
            f"{across:,} of the {len(judged):,} held-out images seem to be near-copies of images that were learned "
            "from. If they are, the accuracy is too high."
        )


def _of_labels(learned: Checkpoint, dataset: Dataset, judged: Judged, doubted: Sequence[Suspect]) -> Iterator[str]:
    yield from _of_suspects(dataset, judged, doubted)
    counts, held_out = dataset.count(dataset.train), len(judged.files)
    most, least = max(counts, key=counts.__getitem__), min(counts, key=counts.__getitem__)
    if counts[most] >= UNEVEN * counts[least]:
        weights = (
            "In the probe each label weighs as much as another, so rare ones are found more often. "
            if learned.recipe["method"] == "probe"
            else ""
        )
        yield (
            f"Labels are uneven: {most} has {counts[most]:,} images and {least} has {counts[least]:,}. {weights}"
            "Accuracy says little about small labels; the table of labels and the balanced accuracy do."
        )
    if len(dataset.train.groups.unique()) < FEW_EACH * len(counts):
        yield f"There are fewer than {FEW_EACH} images of a label to learn from, so scores mean little."
    absent = [label for label, count in dataset.count(dataset.held_out).items() if not count]
    if absent:
        yield f"No images of these labels are held out, so nothing is known about them: {first_few(absent)}."
    if held_out < FEW:
        low, high = (learned.figures[end] for end in ("top1_low", "top1_high"))
        yield (
            f"{held_out:,} held-out images are few: with {held_out:,} others the accuracy could be "
            f"{50 * (high - low):.0f} points away."
        )


def _of_suspects(dataset: Dataset, judged: Judged, doubted: Sequence[Suspect]) -> Iterator[str]:
    """Images are named only where most of their labels may be wrong.

    A model that contradicts the share e of right labels contradicts about e²/2 clearly: 0.1, 1.4 and 5.1 % where e is
    5, 18 and 31 %. Of twice as many, half may be wrong.
    """
    clear = [suspect.file for suspect in doubted if suspect.doubt >= CLEAR]
    if not clear:
        return
    wrong = int((judged.answers != judged.right).sum())
    sentence = (
        f"The model contradicts {len(clear):,} labels clearly. It is itself wrong on {wrong:,} of the "
        f"{len(judged.files):,} held-out images"
    )
    images = len(dataset.train.files) + len(judged.files)
    share = max(len(doubted) / images, wrong / len(judged.files))
    if len(clear) > share**2 * images:
        yield f"{sentence}. Look at {first_few(clear)}, and at the suspicious labels of the report."
    else:
        yield f"{sentence}, so most of these labels are probably right."
