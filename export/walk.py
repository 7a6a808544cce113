"""The files in a folder and in folders below it: every real folder once.

export/walk.py and client/vit_serve_client/walk.py are the same, as the client stands alone; a test compares them.
"""

import os
from heapq import heappop, heappush
from pathlib import Path
from typing import NamedTuple

SUFFIXES = {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".avif", ".avifs"}
MOST = 5_000_000  # files and folders
DEEPEST = 64  # folders below the first
OF_SYSTEMS = {"@eaDir", "#recycle", "$RECYCLE.BIN"}  # thumbnails and deleted files, of Synology's and Windows


class Walk(NamedTuple):
    files: list[Path]  # whatever is not a folder, in the order of names
    repeated: dict[Path, str]  # links that are not followed, because what they lead to is read anyway, with the reason
    unread: dict[Path, str]  # folders that cannot be read, with the reason


def walk(folder: Path) -> Walk:
    """What is in `folder` and in folders below it; hidden files and folders, and OF_SYSTEMS, are left out.

    Every real folder is read once: at its own place, or else at the first link to it in the order of names. A link that
    leads to a folder around it is not followed. Raises ValueError for more than MOST files and folders, or for folders
    that are more than DEEPEST below the first.
    """
    found: list[str] = []
    repeated: dict[Path, str] = {}
    unread: dict[Path, str] = {}
    seen: dict[tuple[int, int], str] = {}
    links = [str(folder)]
    while links:
        to_read = [heappop(links)]  # a link, only once there is no real folder left
        while to_read:
            place = to_read.pop()
            try:
                entries, first = _entries(place, seen)
            except OSError as error:
                unread[Path(place)] = error.strerror or str(error)
                continue
            if first:
                repeated[Path(place)] = f"it is the folder {first}, which is read already"
            for entry in entries:
                if entry.name.startswith(".") or entry.name in OF_SYSTEMS:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    to_read.append(entry.path)
                elif not entry.is_symlink() or not os.path.isdir(entry.path):  # noqa: PTH112 (quicker by far)
                    found.append(entry.path)
                elif _is_around(Path(entry.path), folder):
                    repeated[Path(entry.path)] = "it is a link to a folder in which it lies"
                else:
                    heappush(links, entry.path)
            if len(found) + len(seen) > MOST:
                raise ValueError(f"{folder} has more than {MOST:,} files and folders")
            if len(Path(place).parts) > len(folder.parts) + DEEPEST:
                raise ValueError(f"{place} lies more than {DEEPEST} folders below {folder}")
    found.sort(key=lambda path: path.split("/"))
    return Walk([Path(path) for path in found], dict(sorted(repeated.items())), dict(sorted(unread.items())))


def _entries(place: str, seen: dict[tuple[int, int], str]) -> tuple[list[os.DirEntry[str]], str]:
    """What is in a folder that was not `seen`, or else where it was."""
    status = os.stat(place)  # noqa: PTH116 (quicker)
    identity = status.st_dev, status.st_ino
    if identity in seen:
        return [], seen[identity]
    with os.scandir(place) as entries:
        found = [*entries]
    seen[identity] = place
    return found, ""


def _is_around(link: Path, folder: Path) -> bool:
    """Whether the link, or `folder`, lies in the folder to which the link leads."""
    target = link.resolve()
    return any(place.resolve().is_relative_to(target) for place in (link.parent, folder))
