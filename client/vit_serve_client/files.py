"""Which images a command line means: files, folders, patterns, and names on standard input."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache
from glob import glob
from itertools import takewhile
from pathlib import Path
from typing import BinaryIO

from vit_serve_client.progress import tell
from vit_serve_client.walk import SUFFIXES, walk

STDIN = "-"


def image_files(arguments: Sequence[str], *, stdin: BinaryIO, made: Sequence[Path] = ()) -> list[str]:
    """Each once, in the order in which they are named; those of a folder in the order of their names.

    A file that is named is taken whatever its suffix. What else lies in folders is counted on stderr by its suffix, and
    folders that cannot be read are named. What earlier runs wrote to the folders `made` is left out and counted too.
    Raises FileNotFoundError for a name or a pattern without a file, and if there is no image at all; ValueError for a
    folder that is too deep or has too many files.
    """
    found: dict[str, None] = {}
    other: set[str] = set()
    for argument in arguments:
        names = [argument]
        if argument == STDIN:  # a name per line; with `find -print0`, for names with line breaks, per zero byte
            data = stdin.read()
            if os.name == "nt":  # `dir /b /s` ends a line so
                data = data.replace(b"\r\n", b"\n")
            names = [os.fsdecode(name) for name in data.split(b"\0" if b"\0" in data else b"\n")]
        for name in filter(None, names):
            found |= dict.fromkeys(_files(name, other))
    if types := Counter(sorted(Path(name).suffix.lower() for name in other - found.keys())):
        counts = (f"{count:,} {suffix or 'without a suffix'}" for suffix, count in types.most_common())
        tell(f"left out: {', '.join(counts)}")
    images = _without(found, made, base(arguments)) if made else list(found)
    if count := len(found) - len(images):
        tell(f"left out: {count:,} images in {' or '.join(map(str, made))}, where this run writes")
    if not images:
        raise FileNotFoundError("there is no image")
    return images


def base(arguments: Sequence[str]) -> Path:
    """The deepest folder that has all files, folders and patterns that are named; that of a folder is itself. Without
    one, and for names on standard input, it is `.`: an absolute name is whole then.
    """
    if STDIN in arguments:
        return Path()
    paths = [Path(argument) for argument in arguments]
    folders = [path if path.is_dir() else path.parent if path.exists() else _fixed(path) for path in paths]
    try:
        return Path(os.path.commonpath(folders))
    except ValueError:  # one is absolute and another is not
        return Path()


def _without(images: dict[str, None], made: Iterable[Path], own: Path) -> list[str]:
    """The images that do not lie in `made`. A folder of `made` that is their `own`, or around it, does not count; if it
    is their own, heatmaps are left out: they have the name of another image, and .png.
    """
    home = Path(os.path.realpath(own))
    folders = [Path(os.path.realpath(folder)) for folder in made]

    @cache
    def is_made(folder: Path) -> bool:
        place = Path(os.path.realpath(folder))
        return any(place.is_relative_to(one) and not home.is_relative_to(one) for one in folders)

    def is_heatmap(image: str) -> bool:
        return home in folders and image.endswith(".png") and image.removesuffix(".png") in images

    return [image for image in images if not is_made(Path(image).parent) and not is_heatmap(image)]


def _files(name: str, other: set[str]) -> Iterator[str]:
    """Adds to `other` what lies in a folder and has another suffix."""
    path = Path(name)
    if path.is_dir():
        for file in _walked(path):
            if file.suffix.lower() in SUFFIXES:
                yield str(file)
            else:
                other.add(str(file))
    elif path.exists() or path.is_symlink():  # a link to nothing is named when it is read
        yield name
    elif matches := _below(path) if "**" in path.parts else sorted(glob(name)):  # noqa: PTH207 (Path's is another)
        for match in matches:
            yield from _files(match, other)
    else:
        raise FileNotFoundError(f"there is no file, folder or pattern {name}")


def _fixed(pattern: Path) -> Path:
    """What stands before the first part with a wildcard."""
    return Path(*takewhile(lambda part: not set(part) & set("*?["), pattern.parts))


def _below(pattern: Path) -> list[str]:
    """The files of a pattern with **, and of folders that it fits. glob follows a circle of links without an end."""
    fixed = _fixed(pattern)
    asked = pattern.parts[len(fixed.parts) :]
    of_file = (*asked, "*") if asked[-1] == "**" else asked
    found = []
    for file in _walked(fixed):
        parts = file.parts[len(fixed.parts) :]
        in_folder = file.suffix.lower() in SUFFIXES and any(_fits(parts[:count], asked) for count in range(len(parts)))
        if in_folder or _fits(parts, of_file):
            found.append(str(file))
    return found


def _fits(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_fits(parts[start:], pattern[1:]) for start in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:])


def _walked(folder: Path) -> list[Path]:
    files, repeated, unread = walk(folder)
    for path, reason in (repeated | unread).items():
        tell(f"{path} is left out: {reason}")
    return files
