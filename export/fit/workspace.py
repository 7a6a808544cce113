"""The folder beside an output in which a run keeps what it needs to go on after it was interrupted."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PIXELS = ".pixels"  # suffix of files that the next run writes again
OWN = (".pt", ".new", PIXELS)  # suffixes of all that a run writes: snapshots, those that a kill cut off, and pixels


@contextmanager
def workspace(folder: Path) -> Iterator[Path]:
    """`folder`, made if it is not there, for this process alone. It is deleted at the end.

    After an error snapshots stay in it, and if there are none it is deleted too.
    Raises ValueError while another process uses it, or if a person's files are in it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if others := [file.name for file in folder.iterdir() if file.suffix not in OWN or file.is_dir()]:
        raise ValueError(f"{folder} has {min(others)}, and a run deletes that folder at its end: give another --out")
    lock = os.open(folder, os.O_RDONLY)  # the system unlocks it when the process ends, however it ends
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"another run uses {folder}; wait for its end, or give another --out") from None
        try:
            yield folder
        except BaseException:
            for file in folder.glob(f"*{PIXELS}"):
                file.unlink()
            if not any(folder.iterdir()):
                folder.rmdir()
            raise
        shutil.rmtree(folder)
    finally:
        os.close(lock)
