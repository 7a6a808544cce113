"""The command line: `vit-serve-client SERVER IMAGES...`."""

import argparse
import math
import os
import re
import sys
from contextlib import closing
from pathlib import Path

import httpx

from vit_serve_client.bulk import Bulk, GivenUp, file_of, with_one_file
from vit_serve_client.client import Answer, Client, ServiceProblem
from vit_serve_client.files import image_files
from vit_serve_client.output import OtherRun, Output
from vit_serve_client.progress import Progress, printable, tell

METHODS = ("class_token", "rollout", "evidence", "positive_evidence")
LEAST_S = 5.0  # for an answer, whatever the patience
SOME_FAILED, GAVE_UP, INTERRUPTED = 1, 2, 130  # exit statuses; the last as of programs that SIGINT ends
LASTING = range(400, 500)  # statuses of an image that another run would get too. It is asked again after any other
HINTS = {
    401: "the service wants an API key: give it with --key or VIT_API_KEY",
    404: "the service has no such path: check its address",
}


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    try:
        images = image_files(options.images, stdin=sys.stdin.buffer)
        output = Output(options.out, no_formulas=options.no_formulas)
    except (OSError, ValueError) as error:
        sys.exit(printable(f"not started: {error}"))
    try:
        with closing(output):
            return _run(options, images, output)
    except KeyboardInterrupt:
        done = sum(image in output.failed for image in images)
        again = ". The same command goes on from here" if options.out else ""
        tell(f"interrupted: {done:,} of {len(images):,} images done{again}")
        return INTERRUPTED
    except OtherRun as other:
        sys.exit(printable(f"not started: {other}"))
    except (GivenUp, OSError, ServiceProblem) as stopped:
        reason = str(stopped)
        if isinstance(stopped, ServiceProblem) and (hint := HINTS.get(stopped.problem.status)):
            reason = f"{hint} ({stopped})"
    tell(f"given up: {reason}")
    return GAVE_UP


def _run(options: argparse.Namespace, images: list[str], output: Output) -> int:
    """The exit status. Raises OtherRun, GivenUp, ServiceProblem and OSError."""
    folders = {folder: suffix for folder, suffix in ((options.maps, ".png"), (options.embeddings, ".npy")) if folder}
    for folder, suffix in folders.items():
        named = (image for image, failed in output.failed.items() if not failed)
        if not all((folder / file_of(image, suffix)).exists() for image in named):
            raise OtherRun(f"the output has images that {folder} does not have: give another --out")
        if pair := with_one_file([*output.failed, *images]):
            raise OtherRun(f"{' and '.join(pair)} would have the same file in {folder}: send them in two runs")
    with Client(options.server, key=options.key, deadline_s=max(options.patience, LEAST_S)) as client:
        bulk = Bulk(
            client,
            patience_s=options.patience,
            waiting=lambda matter: tell(
                f"{options.server} {matter} It is asked again for {options.patience:g} seconds"
            ),
            top_k=options.top_k,
            maps=options.maps,
            method=options.method,
            embeddings=options.embeddings,
        )
        output.begin(bulk.model, labels=max(1, min(options.top_k, len(bulk.model.manifest.labels))))
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
        left = [image for image in images if image not in output.failed]
        with Progress(len(images), done=len(images) - len(left)) as progress:

            def record(image: str, result: Answer) -> None:
                if result.error:
                    tell(f"{image}: {result.error.detail}")
                if not result.error or result.error.status in LASTING:
                    output.write(image, result)
                progress.step()

            bulk.run(left, record, concurrency=options.concurrency)
    failed = sum(output.failed.get(image, True) for image in images)
    if not left:
        counts = f"{len(images) - failed} named, {failed} unusable"
        tell(f"{len(images)} already in {options.out} ({counts}); no image was sent")
    elif failed:
        tell(f"{failed} of {len(images)} images could not be used")
    return SOME_FAILED if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="vit-serve-client",
        description="Send images to a service, and write the labels that it gives them.",
        epilog="The exit status is 0 if every image was named, 1 if some could not be used or nothing was started, 2 "
        "if it stopped before the end, and 130 if it was interrupted. The same command then goes on where it stopped, "
        "if there is an --out.",
    )
    add = parser.add_argument
    add("server", type=_address, help="address of the service, such as http://localhost:8000")
    add("images", nargs="+", help="files, folders, patterns, or - for names on standard input")
    add("--out", type=Path, metavar="FILE", help="write the labels to a .csv file; without it, to standard output")
    add("--no-formulas", action="store_true", help="set ' before cells that a spreadsheet would run")
    add("--top-k", type=_positive, default=1, metavar="N", help="labels per image (default: 1)")
    add("--maps", type=Path, metavar="FOLDER", help="write the heatmap of each image")
    add("--method", choices=METHODS, default=METHODS[0], help=f"what heatmaps show (default: {METHODS[0]})")
    add("--embeddings", type=Path, metavar="FOLDER", help="write the embedding of each image, as .npy")
    add("--concurrency", type=_positive, default=16, metavar="N", help="requests at a time (default: 16)")
    add(
        "--patience",
        type=_seconds,
        default=600.0,
        metavar="SECONDS",
        help="give up after so long without an answer (600)",
    )
    add("--key", type=_key, default=os.environ.get("VIT_API_KEY"), help="API key (default: $VIT_API_KEY)")
    return parser


def _address(text: str) -> str:
    try:
        if httpx.URL(text).scheme in ("http", "https") and httpx.URL(text).host:
            return text
    except httpx.InvalidURL:
        pass
    raise argparse.ArgumentTypeError("the address must begin with http:// or https:// and a host")


def _seconds(text: str) -> float:
    if not 0 <= float(text) < math.inf:
        raise ValueError
    return float(text)


def _key(text: str) -> str:
    if not re.fullmatch("[!-~]*", text):
        raise argparse.ArgumentTypeError("a key has no spaces, line breaks or letters beyond ASCII")
    return text


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("it must be a whole number of at least 1")
    return int(text)
