"""Which images a command line means: files, folders, patterns, and names on standard input."""

from collections.abc import Iterable, Iterator
from pathlib import Path

SUFFIXES = {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".avif", ".avifs"}
STDIN = "-"


def image_files(arguments: Iterable[str], *, stdin: Iterable[str]) -> list[str]:
    """Each once, in the order in which they are named; those of a folder in the order of their names.

    A file that is named is taken whatever its suffix. Raises FileNotFoundError for a name or a pattern without a
    file, and if there is no image at all.
    """
    found: dict[str, None] = {}
    for argument in arguments:
        names = [line.rstrip("\n") for line in stdin] if argument == STDIN else [argument]
        for name in filter(None, names):
            found |= dict.fromkeys(_files(name))
    if not found:
        raise FileNotFoundError("there is no image")
    return list(found)


def _files(name: str) -> Iterator[str]:
    path = Path(name)
    if path.is_dir():
        yield from (str(file) for file in sorted(path.rglob("*")) if _is_image(file))
    elif path.exists():
        yield name
    elif matches := sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor)))):
        for match in matches:
            if not match.name.startswith(".") or path.name.startswith("."):
                yield from _files(str(match))
    else:
        raise FileNotFoundError(f"there is no file, folder or pattern {name}")


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and not path.name.startswith(".") and path.is_file()
