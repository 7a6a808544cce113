"""One run: a folder of images and a checkpoint to a file with a model that knows their labels, and a report."""

import dataclasses
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from shlex import quote

from export.fit.dataset import Dataset, read_dataset
from export.fit.known import known_images
from export.fit.labelled import Listing
from export.fit.listing import list_images
from export.fit.methods import Recipe, learn, of_crops, reader
from export.fit.report.folder import write_report
from export.fit.report.judged import Judged, judge, percent
from export.fit.report.page import Report
from export.fit.report.suspects import Suspect, suspects
from export.fit.split import Split, split
from export.fit.workspace import workspace
from export.image_spec import image_spec
from export.place import REPORT, check_file_place
from model.checkpoints.checkpoint import Checkpoint, Description, first_few
from model.checkpoints.families.native import FAMILY, save
from model.checkpoints.imagenet import names_of
from model.fit.doubt import CLEAR
from model.fit.fitted import Fitted
from model.fit.masked import MaskedRecipe

UNEVEN = 10  # times as many images of one label as of another are worth a word
FEW = 100  # held-out images


class NotReported(Exception):
    """The model is written, but its report is not; the message says why."""


def run(
    source: Description, images: Path, out: Path, *, recipe: Recipe, seed: int, strict: bool, replace: bool
) -> Report:
    """Learn from `images`, and write `out`, a .safetensors file, and its report beside it.

    `source` is a Checkpoint, or without weights a network that is learned from nothing.
    With `strict`, an image that cannot be used is an error; with `replace`, `out` is replaced.
    Raises ValueError, FileExistsError or OSError, and leaves what is at `out`; NotReported once `out` is written.
    """
    check_file_place(out, images, replace=replace)
    listing = list_images(images, labelled=not isinstance(recipe, MaskedRecipe))
    once = split(listing)
    with workspace(out.with_suffix(".work")) as work:
        dataset = read_dataset(
            once,
            seed=seed,
            train=image_spec(of_crops(recipe, source.preprocessing)),
            held_out=image_spec(source.preprocessing),
            folder=work,
            features=reader(source, recipe),
            strict=strict,
        )
        fitted = learn(source, recipe, dataset.train.samples, dataset.held_out.samples, work)
        learned = _checkpoint(source, fitted, dataset, name=out.stem)
        judged = doubted = None
        if learned.labels:
            judged = judge(learned, dataset.held_out)
            if fitted.left_out is not None:
                doubted = suspects(dataset.train, fitted.left_out, judged)
            learned = dataclasses.replace(learned, figures={**learned.figures, **judged.figures()})
        save(learned, out)
        learned_file, bundle = (quote(str(path)) for path in (out, Path("bundles", out.stem)))
        method, now = fitted.recipe["method"], datetime.now().astimezone()
        report = Report(
            checkpoint=learned,
            folder=out.with_suffix(REPORT),
            following=f"make export CHECKPOINT={learned_file} OUT={bundle} && make serve BUNDLE={bundle}",
            history=fitted.history,
            dataset=dataset,
            judged=judged,
            suspects=doubted,
            headline=headline(learned, judged),
            origin=f"Learned by the method {method} from {source.name} and the images in {images}, "
            f"on {now:%Y-%m-%d at %H:%M}.",
            notes=tuple(_notes(listing, once, dataset, fitted, doubted or ())),
        )
        try:
            write_report(report)
        except OSError as error:
            raise NotReported(f"{out} is written, but its report is not: {error}") from error
    return report


def _checkpoint(source: Description, fitted: Fitted, dataset: Dataset, *, name: str) -> Checkpoint:
    """The learned model as a checkpoint of this project. Folders that are called by WordNet ids get their names."""
    names = names_of(dataset.labels)
    images = {"train_images": float(len(dataset.train.files)), "held_out_images": float(len(dataset.held_out.files))}
    return Checkpoint(
        name=name,
        family=FAMILY,
        architecture="vit",
        config=fitted.model.config,
        model=fitted.model,
        preprocessing=source.preprocessing,
        labels=names or dataset.labels,
        wordnet=dataset.labels if names else (),
        figures=images | fitted.figures,
        recipe={**fitted.recipe, "checkpoint": source.name},
        history=tuple(dataclasses.asdict(point) for point in fitted.history),
        known=known_images(fitted, dataset, source.preprocessing),
    )


def headline(learned: Checkpoint, judged: Judged | None) -> str:
    figures = learned.figures
    if judged is None:
        return (
            f"It tells the colour of {percent(figures['colour_accuracy'])} of the hidden patches of held-out images. "
            "It has no labels, so it gives embeddings: fine-tune it."
        )
    return (
        f"{percent(figures['top1_accuracy'])} of the {len(judged.files):,} held-out images got the right one of "
        f"{len(judged.labels):,} labels. Of all such images it is {percent(figures['top1_low'])} to "
        f"{percent(figures['top1_high'])}, with 95 % certainty."
    )


def _notes(
    listing: Listing, once: Split, dataset: Dataset, fitted: Fitted, doubted: Sequence[Suspect]
) -> Iterator[str]:
    train, held_out = len(dataset.train.files), len(dataset.held_out.files)
    tenth = "A tenth of each label was held out" if dataset.labels else "A tenth was held out"
    how = tenth if dataset.chosen else "The held-out images were given"
    yield f"{train:,} images were learned from and {held_out:,} held out. {how}."
    if fitted.recipe.get("rate", ...) is None:
        yield "Fine-tuning could not add to the probe, so the model is the probe."
    yield from (f"{note}." for note in listing.notes)
    if left_out := [str(file) for file, _ in dataset.left_out]:
        yield f"Images that could not be used: {len(left_out):,} ({first_few(left_out)})."
    if copies := [str(file) for file in once.copies]:
        yield f"Copies of other images, which were not used: {len(copies):,} ({first_few(copies)})."
    if once.across:
        yield f"Copies of held-out images among those to learn from: {once.across:,}."
    if wrong := [suspect.file for suspect in doubted if suspect.doubt >= CLEAR]:
        yield f"Labels that look wrong: {len(wrong):,} ({first_few(wrong)}). See the suspicious labels of the report."
    counts = dataset.count(dataset.train)
    if counts:
        most, least = max(counts, key=counts.__getitem__), min(counts, key=counts.__getitem__)
        if counts[most] >= UNEVEN * counts[least]:
            yield (
                f"Labels are uneven: {most} has {counts[most]:,} images and {least} has {counts[least]:,}. Accuracy "
                "says little about small labels; the table of labels and the balanced accuracy do."
            )
        absent = [label for label, count in dataset.count(dataset.held_out).items() if not count]
        if absent:
            yield f"No images of these labels are held out, so nothing is known about them: {first_few(absent)}."
        if held_out < FEW:
            yield f"Held-out images are few ({held_out:,}): with others, the accuracy would be another."
