"""The command `vit-serve export`, which turns a checkpoint into a checked bundle: its options and its messages.

`vit-serve inspect` shows what a checkpoint is, `vit-serve fit` learns one from a person's images, and `vit-serve judge`
says which map of a bundle to believe. In a clone they are `python -m export`, `python -m export inspect` and so on.
"""

import argparse
import logging
import os
from pathlib import Path
from shlex import quote

from export.arguments import CHECKPOINT, PRECISIONS, FactsParser, add_set, image_size, layers
from export.crop import about_crop
from export.fit.command import fit, fit_parser
from export.judge.command import judge, judge_parser
from export.messages import stop, tell
from export.refusals import check_export, check_inspect
from model.checkpoints.checkpoint import CheckpointError, Description
from model.checkpoints.labels import PROMPT
from model.progress import working


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["inspect"]:
        inspect(_inspect_parser().parse_args(arguments[1:]))
    elif arguments[:1] == ["fit"]:
        fit(fit_parser().parse_args(arguments[1:]))
    elif arguments[:1] == ["judge"]:
        judge(judge_parser().parse_args(arguments[1:]))
    else:
        export(_parser().parse_args(arguments))


def inspect(options: argparse.Namespace) -> None:
    try:
        check_inspect(options)
    except ValueError as error:
        stop(f"not inspected: {error}")
    with working("starting", leave=False):
        from model.checkpoints.describe import about_weights, learned, summary, table, unusual
        from model.checkpoints.load import describe_checkpoint
    try:
        description = describe_checkpoint(
            options.checkpoint,
            overrides=dict(options.set),
            labels=options.labels,
            prompts=tuple(options.prompt),
            without=options.without,
        )
    except (CheckpointError, OSError, ValueError) as error:
        stop(f"not inspected: {error}")
    tell(summary(description))
    tell(table({**unusual(description), **learned(description)}))
    for sentence in about_weights(description):
        tell(sentence)
    if description.labels_advice:
        tell(_labels(description))
    if description.advice:
        tell(description.advice)
    if description.problems:
        stop(f"It cannot be exported yet: {'; '.join(description.problems)}.")


def export(options: argparse.Namespace) -> None:
    try:
        check_export(options)
    except ValueError as error:
        stop(f"not exported: {error}")
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # ONNX Runtime reads it when it is imported, not later
    with working("starting", leave=False):
        from export.bundle import write_bundle
        from export.folder import read_folder
        from export.other_engine import other_engine
        from export.parity import ParityError
        from export.summary import measured, of_texts, written
        from model.checkpoints import load_checkpoint
        from model.checkpoints.describe import about_weights, table, unusual

    for name in ("torch.onnx", "onnxscript"):
        logging.getLogger(name).setLevel(logging.ERROR)
    overrides = dict(options.set)
    if options.image_size:
        overrides["image_size"] = options.image_size
    try:
        with working("reading the checkpoint", leave=False):
            checkpoint = load_checkpoint(
                options.checkpoint,
                overrides=overrides,
                labels=options.labels,
                prompts=tuple(options.prompt),
                without=options.without,
                text=options.text,
            )
        images = read_folder(options.pictures, checkpoint) if options.pictures else None
        manifest = write_bundle(
            checkpoint,
            options.out,
            replace=options.replace,
            precision=options.precision,
            images=images,
            calibrate=options.calibrate,
            layers=options.layers,
        )
    except (CheckpointError, OSError, ParityError, ValueError) as error:
        stop(f"not exported: {error}")
    tell(written(options.out, manifest))
    for sentence in about_weights(checkpoint):
        tell(sentence)
    if manifest.labels_from:
        tell(_labels(checkpoint))
    if checkpoint.advice:
        tell(checkpoint.advice)
    tell(table(unusual(checkpoint)))
    if images:
        tell(f"Images: {images.summary}.")
        if crop := about_crop(checkpoint.preprocessing, images.seen):
            tell(crop)
    for sentence in (*of_texts(options.out, manifest), *measured(manifest)):
        tell(sentence)
    if complaint := other_engine(options.out, manifest):
        tell(complaint)
    tell(f"Next: vit-serve serve --bundle {quote(str(options.out))}")


def _labels(description: Description) -> str:
    """Where the labels were found, and what to do if they are a guess."""
    return ". ".join(filter(None, ("Labels: " + description.labels_from, description.labels_advice)))


def _inspect_parser() -> argparse.ArgumentParser:
    parser = FactsParser(
        prog="vit-serve inspect", description="Show what a checkpoint is and where each fact was found."
    )
    parser.add_argument("checkpoint", help=CHECKPOINT)
    _add_facts(parser)
    return parser


def _parser() -> argparse.ArgumentParser:
    parser = FactsParser(
        prog="vit-serve export",
        description="Turn a Vision Transformer checkpoint into a bundle that the service can serve. The ONNX graphs "
        "are checked against PyTorch; if they differ, nothing is written.",
        epilog="`vit-serve inspect CHECKPOINT` shows what a checkpoint is. `vit-serve fit CHECKPOINT` "
        "learns the labels of your own images. `vit-serve judge BUNDLE` says which map to believe on them.",
    )
    parser.add_argument("--checkpoint", required=True, help=CHECKPOINT)
    _add_facts(parser)
    parser.add_argument("--out", type=Path, required=True, help="folder to write, such as bundles/NAME")
    parser.add_argument(
        "--precision",
        choices=PRECISIONS,
        default="fp32",
        help="bf16 and int8 are for CPUs, fp16 is for CUDA (default: fp32). The export measures how often answers stay "
        "the same.",
    )
    parser.add_argument(
        "--pictures",
        type=Path,
        metavar="FOLDER",
        help="images to measure with, in place of drawn shapes: ranges for bf16, int8 and fp16, and how often answers "
        "stay the same. At most 2,048 are read, chosen evenly. If they are in folders that are called by the names, "
        "WordNet ids or indices of the labels, accuracy and calibration error are measured too.",
    )
    parser.add_argument(
        "--calibrate",
        action="store_true",
        help="divide logits by the temperature that makes the labels of --pictures most likely, so that nine "
        "in ten labels with a score of 0.9 are right",
    )
    parser.add_argument(
        "--layers",
        type=layers,
        default=(),
        metavar="K,K",
        help="layers whose tokens the service gives too, such as 4,8,12: the residual stream after so many blocks, "
        "without the norm",
    )
    parser.add_argument(
        "--text",
        action="store_true",
        help="the text tower of CLIP or SigLIP too, so that requests can bring labels and other texts. It makes the "
        "bundle larger: by 254 MB for ViT-B/16 of CLIP",
    )
    parser.add_argument("--replace", action="store_true", help="replace the folder if it exists")
    parser.add_argument(
        "--image-size",
        type=image_size,
        metavar="N or HEIGHTxWIDTH",
        help="serve another image size. Positions are interpolated as the checkpoint's library does it, and the crop "
        "cuts off the same share.",
    )
    return parser


def _add_facts(parser: argparse.ArgumentParser) -> None:
    add_set(parser)
    parser.add_argument(
        "--labels",
        metavar="FILE",
        help="names of the classes: one per line, a JSON list or object, or a CSV with a column label and perhaps one "
        "index. `none` numbers them. Without it, names are the checkpoint's own, or those of the ImageNet that has "
        "as many classes. For CLIP and SigLIP the file has the labels to choose among, and without it they give "
        "embeddings.",
    )
    parser.add_argument(
        "--prompt",
        action="append",
        default=[],
        metavar="TEXT",
        help="the sentence in which CLIP or SigLIP reads each label, with {} in its place (default: "
        f'"{PROMPT}"). Several are averaged: give the option once for each.',
    )
