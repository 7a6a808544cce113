"""What a person types after `python -m app.client`, and what they are told."""

import argparse
import asyncio
import io
import os
import sys
from pathlib import Path

from tqdm import tqdm

from app.client import requests
from app.client.answers import Problem, Result
from app.client.bulk import Bulk
from app.client.client import AsyncClient
from app.client.embeddings import Row, open_rows
from app.client.files import image_files
from app.client.ledger import Csv, Ledger, open_ledger
from app.client.patience import GivenUp, Patient

METHODS = ("class_token", "rollout", "evidence", "positive_evidence")
SOME_FAILED, GAVE_UP = 1, 2  # exit statuses


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="surrogateescape")  # names of files may be no text
    try:
        images = image_files(options.images, stdin=sys.stdin)
        ledger = open_ledger(options.out) if options.out else _standard_output()
        _check_begun_together(ledger, options.maps, options.embeddings)
    except (OSError, ValueError) as error:
        sys.exit(f"not started: {error}")
    try:
        return asyncio.run(_run(options, images, ledger))
    except (GivenUp, OSError) as stopped:
        print(f"given up: {stopped}", file=sys.stderr)  # noqa: T201
        return GAVE_UP
    except KeyboardInterrupt:
        print("interrupted. The same command goes on from here.", file=sys.stderr)  # noqa: T201
        return GAVE_UP
    finally:
        if options.out:
            ledger.close()


async def _run(options: argparse.Namespace, images: list[str], ledger: Ledger) -> int:
    left = [image for image in images if image not in ledger.failed]
    async with AsyncClient(options.server, key=options.key, connections=options.concurrency) as client:
        service = Patient(client, patience_s=options.patience)
        rows = await _rows(service, options.embeddings, images) if options.embeddings else None
        with tqdm(total=len(images), initial=len(images) - len(left), unit="image", disable=None) as bar:

            def record(image: str, outcome: Result | Problem) -> None:
                if isinstance(outcome, Problem):
                    tqdm.write(f"{image}: {outcome.detail}", file=sys.stderr)
                ledger.write(image, outcome)
                bar.update()

            bulk = Bulk(
                service=service,
                record=record,
                top_k=options.top_k,
                maps=options.maps,
                method=options.method,
                embeddings=rows,
                concurrency=options.concurrency,
            )
            await bulk.run(left)
    if failed := sum(ledger.failed[image] for image in images):
        print(f"{failed} of {len(images)} images could not be used", file=sys.stderr)  # noqa: T201
    return SOME_FAILED if failed else 0


def _check_begun_together(ledger: Ledger, *others: Path | None) -> None:
    """Images in the output are not asked again, so what is asked for now must have been asked for then.

    Raises ValueError.
    """
    for path in others:
        if ledger.failed and path and not path.exists():
            raise ValueError(f"the output has images that {path} does not have: give another --out")


def _standard_output() -> Ledger:
    sys.stdout.write(Csv.header)
    return Ledger(sys.stdout, Csv())


async def _rows(service: Patient, path: Path, images: list[str]) -> dict[str, Row]:
    """Raises GivenUp."""
    model = await service.ask(requests.model())
    if isinstance(model, Problem):
        raise GivenUp(model.detail)
    try:
        return open_rows(path, images, model["manifest"]["features"])
    except ValueError as error:
        raise GivenUp(str(error)) from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m app.client",
        description="Send images to a service, and write the labels that it gives them.",
        epilog="The exit status is 0 if every image was named, 1 if some could not be used or nothing was started, and "
        "2 if it stopped before the end. The same command then goes on where it stopped, if there is an --out.",
    )
    parser.add_argument("server", type=_address, help="address of the service, such as http://localhost:8000")
    parser.add_argument("images", nargs="+", help="files, folders, patterns, or - for names on standard input")
    parser.add_argument("--out", type=Path, metavar="FILE", help=".csv or .jsonl; without it, CSV on standard output")
    parser.add_argument("--top-k", type=_positive, default=1, metavar="N", help="labels for each image (default: 1)")
    parser.add_argument("--maps", type=Path, metavar="FOLDER", help="write the heatmap of each image")
    parser.add_argument(
        "--method", choices=METHODS, default=METHODS[0], help=f"what heatmaps show (default: {METHODS[0]})"
    )
    parser.add_argument(
        "--embeddings",
        type=_npy,
        metavar="FILE.npy",
        help="write embeddings as an array (images, features). A text file beside it names the rows; rows of images "
        "that could not be used are NaN",
    )
    parser.add_argument(
        "--concurrency", type=_positive, default=16, metavar="N", help="requests at a time (default: 16)"
    )
    parser.add_argument(
        "--patience", type=float, default=600.0, metavar="SECONDS", help="give up after so long without an answer (600)"
    )
    parser.add_argument("--key", default=os.environ.get("VIT_API_KEY"), help="API key (default: $VIT_API_KEY)")
    return parser


def _address(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise argparse.ArgumentTypeError("the address has to begin with http:// or https://")
    return text


def _npy(text: str) -> Path:
    if Path(text).suffix != ".npy":
        raise argparse.ArgumentTypeError("the file has to end in .npy")
    return Path(text)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("it has to be a whole number of at least 1")
    return int(text)
