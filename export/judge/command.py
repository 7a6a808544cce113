"""The command `vit-serve judge BUNDLE --images FOLDER`: its options and its messages."""

import argparse
from pathlib import Path

from export.arguments import Parser, count
from export.messages import stop, tell
from export.refusals import check_judge
from model.progress import working

LIMIT = 40  # images


def judge(options: argparse.Namespace) -> None:
    try:
        check_judge(options)
    except ValueError as error:
        stop(f"not judged: {error}")
    with working("starting", leave=False):
        from app.errors import CannotStart, ServiceError
        from export.judge.page import lines
        from export.judge.run import run
    try:
        judged = run(options.bundle, options.images, options.masks, limit=options.limit)
    except (CannotStart, ServiceError, OSError, ValueError) as error:
        stop(f"not judged: {getattr(error, 'detail', None) or error}")
    tell(judged.judgement.says)
    tell(lines(judged.judgement))
    tell(f"Page: {judged.page}")
    tell(f"The service reads {judged.table} when it starts.")


def judge_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="vit-serve judge",
        description="Measure which map to believe on your own images. Every map that the bundle offers is put to the "
        "test of verify: does the score of the answer follow the patches that the map calls important? The table "
        "goes into the bundle, whose digest stays the same, and a page with images beside it.",
    )
    parser.add_argument("bundle", type=Path, metavar="BUNDLE", help="folder of the bundle, such as bundles/NAME")
    parser.add_argument("--images", type=Path, required=True, metavar="FOLDER", help="images, which need no labels")
    parser.add_argument(
        "--masks",
        type=Path,
        metavar="FOLDER",
        help="images that are light where the object is, with the names and sizes of others: how often do the "
        "hottest patches lie on it?",
    )
    parser.add_argument(
        "--limit",
        type=count,
        default=LIMIT,
        metavar="N",
        help=f"judge at most so many of the images, chosen evenly (default: {LIMIT})",
    )
    return parser
