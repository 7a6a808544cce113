"""One run: a folder of images and a checkpoint to a file with a model that knows their labels, and a report."""

import dataclasses
from datetime import datetime
from pathlib import Path
from shlex import quote

from export.fit.dataset import Dataset, read_dataset
from export.fit.known import known_images
from export.fit.listing import list_images
from export.fit.methods import Recipe, learn, of_crops, reader
from export.fit.report.folder import write_report
from export.fit.report.judged import judge
from export.fit.report.notes import headline, notes
from export.fit.report.page import Report
from export.fit.report.suspects import suspects
from export.fit.split import split
from export.fit.workspace import workspace
from export.image_spec import image_spec
from export.place import REPORT, check_file_place
from model.checkpoints.checkpoint import Checkpoint, Description
from model.checkpoints.families.native import FAMILY, save
from model.checkpoints.imagenet import names_of
from model.fit.fitted import Fitted
from model.fit.masked import MaskedRecipe


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
            following=f"vit-serve export --checkpoint {learned_file} --out {bundle} "
            f"&& vit-serve serve --bundle {bundle}",
            history=fitted.history,
            dataset=dataset,
            judged=judged,
            suspects=doubted,
            headline=headline(learned, judged),
            origin=f"Learned by the method {method} from {source.name} and the images in {images}, "
            f"on {now:%Y-%m-%d at %H:%M}.",
            notes=tuple(notes(learned, listing, once, dataset, judged, doubted or ())),
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
