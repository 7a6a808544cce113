"""Files and folders that are there whole or not at all, whatever happens to the process or the disk meanwhile."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EBADF, EINVAL, ENOTSUP
from pathlib import Path

UNSUPPORTED = {EBADF, EINVAL, ENOTSUP}


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A name beside `path` to write to. What is written takes the place of `path` once it is on the disk.

    After an error `path` is as it was, and nothing else is left.
    """
    temporary = path.with_name(f".{path.name}.new")
    try:
        temporary.touch()
        mode = temporary.stat().st_mode
        yield temporary
        temporary.chmod(mode)  # safetensors writes files that only their owner may read
        _sync(temporary)
        temporary.replace(path)
        _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """An empty folder beside `path` to fill. It takes the place of `path` once all of it is on the disk.

    After an error `path` is as it was, and nothing else is left.
    """
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as temporary:
        folder = Path(temporary) / "new"
        folder.mkdir()
        yield folder
        for part in [*folder.rglob("*"), folder]:
            _sync(part)
        old = Path(temporary) / "old"
        try:
            if path.exists():
                path.rename(old)
            folder.rename(path)
        except BaseException:
            if old.exists() and not path.exists():
                old.rename(path)
            raise
        _sync(path.parent)


def _sync(path: Path) -> None:
    """Have the system write a file, or the names in a folder, to the disk. Not every file system does it for a folder:
    Samba and shares of virtual machines refuse.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if not path.is_dir() or error.errno not in UNSUPPORTED:
            raise
    finally:
        os.close(descriptor)
