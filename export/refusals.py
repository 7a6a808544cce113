"""What a command can refuse at once, from its options and the disk. PyTorch, which takes seconds to import, is not."""

import argparse
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from export.arguments import FROM_SCRATCH
from export.place import (
    check_bundle,
    check_bundle_place,
    check_file_place,
    check_folder,
    check_labelled_images,
)
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.files import weights_files
from model.checkpoints.hub import SCHEME
from model.checkpoints.label_files import read
from model.checkpoints.labels import NONE, check_prompts
from model.variants import variant


def check_export(options: argparse.Namespace) -> None:
    """Raises ValueError, as all of these, with every reason."""
    _check(
        partial(_check_facts, options),
        partial(check_bundle_place, options.out, replace=options.replace),
        partial(_check_checkpoint, options.checkpoint),
        partial(_check_prompts, options),
        partial(_check_labels, options.labels),
        partial(_check_images, options),
    )


def check_inspect(options: argparse.Namespace) -> None:
    _check(
        partial(_check_facts, options),
        partial(_check_checkpoint, options.checkpoint),
        partial(_check_prompts, options),
        partial(_check_labels, options.labels),
    )


def check_fit(options: argparse.Namespace) -> None:
    _check(
        partial(_check_facts, options),
        partial(_check_method, options),
        partial(check_labelled_images, options.images),
        partial(check_file_place, options.out, options.images, replace=options.replace),
        partial(_check_checkpoint, options.checkpoint),
    )


def check_judge(options: argparse.Namespace) -> None:
    _check(
        partial(check_bundle, options.bundle),
        partial(check_folder, options.images, "--images"),
        *([partial(check_folder, options.masks, "--masks")] if options.masks else ()),
    )


def _check(*checks: Callable[[], None]) -> None:
    reasons = []
    for check in checks:
        try:
            check()
        except (CheckpointError, OSError, ValueError) as error:
            reasons.append(str(error))
    if reasons:
        raise ValueError("; ".join(reasons))


def _check_facts(options: argparse.Namespace) -> None:
    """No fact has two values."""
    facts = [("--set", name) for name, _ in options.set]
    if getattr(options, "image_size", None):
        facts.append(("--set", "image_size"))
    facts += [("--recipe", name) for name, _ in getattr(options, "recipe", ())]
    if twice := [f"{option} {name}" for (option, name), count in Counter(facts).items() if count > 1]:
        raise ValueError(f"{twice[0]}: it is given twice")


def _check_checkpoint(checkpoint: str | None) -> None:
    """Open the files of a checkpoint on this machine. A checkpoint on the hub is not looked for."""
    if checkpoint and not checkpoint.startswith(SCHEME):
        for file in weights_files(Path(checkpoint)):
            file.open("rb").close()


def _check_prompts(options: argparse.Namespace) -> None:
    check_prompts(options.prompt)
    if options.prompt and options.labels is None:
        raise ValueError(
            "--prompt TEXT is for CLIP and SigLIP, and needs --labels FILE with the labels to choose among"
        )


def _check_labels(labels: str | None) -> None:
    if labels not in (None, NONE):
        read(Path(labels))


def _check_images(options: argparse.Namespace) -> None:
    if options.pictures:
        check_folder(options.pictures, "--pictures")
    elif options.calibrate:
        raise ValueError("--calibrate needs labelled images: --pictures FOLDER, and in it a folder for each label")
    if options.calibrate and options.labels is None and dict(options.set).get("num_classes") == "0":
        raise ValueError("--calibrate: --set num_classes=0 leaves the head out, so there are no scores")


def _check_method(options: argparse.Namespace) -> None:
    """The method begins with what is given: a checkpoint, or a variant from scratch."""
    from_scratch = options.method in FROM_SCRATCH
    if bool(options.checkpoint) == bool(options.from_scratch) or (options.from_scratch and not from_scratch):
        begins = "a checkpoint"
        if from_scratch:
            begins = "--from-scratch VARIANT, or with a network like that in a checkpoint"
        raise ValueError(f"--method {options.method} begins with {begins}: give a file, a folder or hf://org/name")
    if options.checkpoint:
        if options.positions:
            raise ValueError("--positions: it is for a network from scratch; the checkpoint has positions of its own")
        if ignored := sorted({"name", "score"} & {name for name, _ in options.set}):
            raise ValueError(
                f"--set {', '.join(ignored)}: a learned model is called like its file and scores with a "
                "softmax. Give it to the export"
            )
        return
    if options.set or options.without:
        option = "--set" if options.set else "--without"
        raise ValueError(f"{option}: it is for facts of a checkpoint, and --method {options.method} begins with none")
    if options.image_size:
        height, width = map(int, options.image_size.split(","))
        variant(options.from_scratch, image_size=(height, width), num_classes=0)
