"""`python -m app.client SERVER IMAGES...`: names what is in many images, and keeps their maps and embeddings."""

import argparse
import asyncio
import os
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from app.client.answers import Problem, Result
from app.client.bulk import GivenUp, Progress, Wishes, run
from app.client.client import AsyncClient
from app.client.files import image_files
from app.client.ledger import Csv, Ledger, open_ledger

SOME_FAILED, GAVE_UP = 1, 2  # exit statuses


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    try:
        images = image_files(options.images, stdin=sys.stdin)
        ledger = open_ledger(options.out) if options.out else _standard_output()
        _check_begun_together(ledger, options.maps, options.embeddings)
    except (OSError, ValueError) as error:
        sys.exit(f"not started: {error}")
    try:
        return asyncio.run(_run(options, images, ledger))
    except GivenUp as given_up:
        print(f"given up: {given_up}. The same command goes on from here.", file=sys.stderr)  # noqa: T201
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
        rows = await _rows(client, options.embeddings, images) if options.embeddings else None
        with tqdm(total=len(images), initial=len(images) - len(left), unit="image", disable=None) as bar:

            def record(image: str, outcome: Result | Problem) -> None:
                if isinstance(outcome, Problem):
                    tqdm.write(f"{image}: {outcome.detail}", file=sys.stderr)
                ledger.write(image, outcome)

            wishes = Wishes(
                record=record,
                top_k=options.top_k,
                maps=options.maps,
                embeddings=rows,
                concurrency=options.concurrency,
                patience_s=options.patience,
            )
            await run(client, left, wishes, Progress(bar.update))
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


async def _rows(client: AsyncClient, path: Path, images: list[str]) -> dict[str, npt.NDArray[np.float32]]:
    """A row of the file for each image; NaN until it is filled. Names stand beside it, a line for each row."""
    shape = (len(images), (await client.model())["manifest"]["features"])
    names = path.with_suffix(".txt")
    listed = "".join(f"{image}\n" for image in images)
    if path.exists() and names.exists() and names.read_text() == listed:
        array = np.lib.format.open_memmap(path, mode="r+")
    else:
        array = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
        array[:] = np.nan
        names.write_text(listed)
    return dict(zip(images, array, strict=True))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m app.client",
        description="Send images to a service, and write the labels that it gives them.",
        epilog="The exit status is 0 if every image was named, 1 if some could not be used, and 2 if the service was "
        "busy or away for too long. The same command then goes on where it stopped, if there is an --out.",
    )
    parser.add_argument("server", help="address of the service, such as http://localhost:8000")
    parser.add_argument("images", nargs="+", help="files, folders, patterns, or - for names on standard input")
    parser.add_argument("--out", type=Path, metavar="FILE", help=".csv or .jsonl; without it, CSV on standard output")
    parser.add_argument("--top-k", type=_positive, default=1, metavar="N", help="labels for each image (default: 1)")
    parser.add_argument("--maps", type=Path, metavar="FOLDER", help="write the heatmap of each image")
    parser.add_argument(
        "--embeddings",
        type=Path,
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


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
