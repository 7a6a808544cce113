"""The options of the command line: `vit-serve-client SERVER IMAGES...`."""

import argparse
import math
import os
import re
from pathlib import Path
from typing import Any, NoReturn

import httpx

from vit_serve_client.address import whole

METHODS = ("class_token", "rollout", "evidence", "positive_evidence", "measured")


def parser(program: str) -> argparse.ArgumentParser:
    command = _Parser(
        prog=program,
        description="Send images to a service, and write the labels that it gives them.",
        epilog="The exit status is 0 if every image was named, 1 if some could not be used or nothing was started, 2 "
        "if it stopped before the end, and 130 if it was interrupted. The same command then goes on where it stopped, "
        "if there is an --out.",
    )
    add = command.add_argument
    add("server", type=_address, help="address of the service, such as http://localhost:8000")
    add("images", nargs="+", help="files, folders, patterns, or - for names on standard input")
    add(
        "--out",
        type=Path,
        metavar="FILE",
        help="write to a .csv, .jsonl or .parquet file; without it, to standard output",
    )
    add("--no-formulas", action="store_true", help="set ' before cells that a spreadsheet would run")
    add("--top-k", type=_positive, default=1, metavar="N", help="labels per image (default: 1)")
    add("--labels", metavar="A,B", help="labels to choose among, for models that read texts (default: the model's own)")
    add("--prompt", metavar="TEXT", help="the sentence in which they are read, such as 'a photo of a {}'")
    add(
        "--unfamiliar",
        choices=("answer", "refuse"),
        help="what images below the least familiarity get (default: as the service is set)",
    )
    add("--least-familiarity", type=_share, metavar="SHARE", help="0 to 1; without --unfamiliar, it refuses too")
    add("--maps", type=Path, metavar="FOLDER", help="write heatmaps; FOLDER mirrors that of the images")
    add("--method", choices=METHODS, default=METHODS[0], help=f"what heatmaps show (default: {METHODS[0]})")
    add("--embeddings", type=Path, metavar="PLACE", help="write embeddings: as .npy to a folder, or to a .parquet file")
    add("--patches", type=Path, metavar="FOLDER", help="write the patch tokens of each image as .npy")
    add(
        "--least-sure",
        nargs=2,
        action=_Copies,
        metavar=("N", "FOLDER"),
        help="copy the N images with the lowest scores, with their heatmaps",
    )
    add(
        "--least-familiar",
        nargs=2,
        action=_Copies,
        metavar=("N", "FOLDER"),
        help="copy the N images that are least like those that the model knows, with their heatmaps",
    )
    add(
        "--part",
        type=_part,
        default=(0, 1),
        metavar="I/N",
        help="only a share of the images, by a hash of their names: 0/16 to 15/16",
    )
    add("--concurrency", type=_positive, default=16, metavar="N", help="requests at a time (default: 16)")
    add(
        "--patience",
        type=_seconds,
        default=600.0,
        metavar="SECONDS",
        help="give up after so long without an answer (600)",
    )
    add("--key", type=_key, default=os.environ.get("VIT_API_KEY"), help="API key (default: $VIT_API_KEY)")
    return command


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """End with the message alone: the usage would fill the screen."""
        self.exit(2, f"{message}. --help lists every option.\n")


class _Copies(argparse.Action):
    """How many, and the folder."""

    def __call__(self, _: object, options: argparse.Namespace, values: Any, *__: object) -> None:
        try:
            setattr(options, self.dest, (_positive(values[0]), Path(values[1])))
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentError(self, str(error)) from None


def _address(text: str) -> str:
    try:
        url = httpx.URL(address := whole(text))
        if url.scheme in ("http", "https") and url.host:
            return address
    except httpx.InvalidURL:
        pass
    raise argparse.ArgumentTypeError("the address must begin with http:// or https:// and a host")


def _seconds(text: str) -> float:
    if not 0 <= float(text) < math.inf:
        raise ValueError
    return float(text)


def _share(text: str) -> float:
    try:
        if 0 <= float(text) <= 1:
            return float(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError("it must be a number from 0 to 1")


def _key(text: str) -> str:
    if not re.fullmatch("[!-~]*", text):
        raise argparse.ArgumentTypeError("a key has no spaces, line breaks or letters beyond ASCII")
    return text


def _part(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    if not found or int(found[1]) >= int(found[2]):
        parts = int(found[2]) if found and int(found[2]) else 16
        raise argparse.ArgumentTypeError(f"the parts of {parts} are 0/{parts} to {parts - 1}/{parts}")
    return int(found[1]), int(found[2])


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("it must be a whole number of at least 1")
    return int(text)
