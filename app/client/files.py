"""Which images a command line means: files, folders, patterns, and names on standard input."""

import os
from collections.abc import Iterable, Iterator
from glob import glob
from pathlib import Path
from typing import BinaryIO

SUFFIXES = {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".avif", ".avifs"}
STDIN = "-"


def image_files(arguments: Iterable[str], *, stdin: BinaryIO) -> list[str]:
    """Each once, in the order in which they are named; those of a folder in the order of their names.

    A file that is named is taken whatever its suffix. Raises FileNotFoundError for a name or a pattern without a
    file, and if there is no image at all.
    """
    found: dict[str, None] = {}
    for argument in arguments:
        names = [argument]
        if argument == STDIN:  # a name per line; with `find -print0`, for names with line breaks, per zero byte
            data = stdin.read()
            names = [os.fsdecode(name) for name in data.split(b"\0" if b"\0" in data else b"\n")]
        for name in filter(None, names):
            found |= dict.fromkeys(_files(name))
    if not found:
        raise FileNotFoundError("there is no image")
    return list(found)


def _files(name: str) -> Iterator[str]:
    path = Path(name)
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.suffix.lower() in SUFFIXES and not file.name.startswith(".") and file.is_file():
                yield str(file)
    elif path.exists():
        yield name
    elif matches := sorted(glob(name, recursive=True)):  # noqa: PTH207 (a Path's finds hidden files too)
        for match in matches:
            yield from _files(match)
    else:
        raise FileNotFoundError(f"there is no file, folder or pattern {name}")
