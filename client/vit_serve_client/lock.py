"""A file that grows, and that one run at a time writes."""

import errno
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]  # mypy takes it for a module alone

WITHOUT = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP}  # of file systems that have no locks, as Lustre by default


def locked(path: Path) -> BinaryIO:
    """The file, to append to. Another run cannot have it until it is closed, where the system and its file system have
    locks. Raises ValueError while another run has it, and if the path is a pipe, a device or a folder.
    """
    if path.exists() and not path.is_file():  # a pipe would wait for a reader, and a device may have no end
        raise ValueError(f"{path} is not a file")
    file = path.open("ab")
    try:
        if fcntl:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in WITHOUT:
            return file
        file.close()
        if isinstance(error, BlockingIOError):
            raise ValueError(f"{path}: another run is writing it") from None
        raise
    return file
