"""Images as a person has them, as the bytes of files: nothing that never ends.

app/images/source.py and client/vit_serve_client/source.py are the same, as the client stands alone; a test compares
them.
"""

import errno
import os
import stat
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import Any

Source = Any  # the bytes of an image file, its path, a PIL image, or a uint8 array (rows, columns, channels)
LARGEST = 2**29  # bytes; 50 million pixels, which is all that the service decodes, take less in any format
KINDS = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


def file_of(image: Source) -> bytes:
    """The bytes of an image file, or the file of pixels as a PNG. Raises OSError, and TypeError for anything else."""
    if isinstance(image, bytes | bytearray | memoryview):
        return bytes(image)
    return read_file(image) if isinstance(image, str | Path) else _png(image)


def open_file(path: str | Path) -> BufferedReader:
    """A regular file of at most LARGEST bytes. Raises OSError, also for what could be read without an end."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except ValueError as error:  # no file can have this name
        raise OSError(errno.EINVAL, str(error)) from None
    if kind := KINDS.get(stat.S_IFMT(status.st_mode)):
        raise OSError(errno.EINVAL, f"it is {kind}, not a file")
    if status.st_size > LARGEST:
        raise OSError(errno.EFBIG, f"it has {status.st_size:,} bytes, more than {LARGEST:,}")
    return Path(path if status.st_size else os.devnull).open("rb")  # /proc has files without a size that do not end


def read_file(path: str | Path) -> bytes:
    """As `open_file`."""
    with open_file(path) as file:
        return file.read()


def _png(image: Any) -> bytes:
    """A PNG of a PIL image, or of a uint8 array (rows, columns), with 3 or 4 channels last.

    Raises TypeError for anything else.
    """
    from PIL import Image

    if not isinstance(image, Image.Image):
        kind = str(getattr(image, "dtype", type(image).__name__))
        shape = tuple(getattr(image, "shape", ()))
        if kind not in ("uint8", "torch.uint8") or not (len(shape) == 2 or (len(shape) == 3 and shape[2] in (3, 4))):
            raise TypeError(
                f"an image is bytes, a path, a PIL image or a uint8 array of rows, columns and 3 channels, not {kind} "
                f"{shape or ''}".rstrip()
            )
        image = Image.fromarray(_array(image))
    if image.mode not in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"):  # which PNG has
        image = image.convert("RGB")
    file = BytesIO()
    image.save(file, "PNG", compress_level=1)
    return file.getvalue()


def _array(image: Any) -> Any:
    import numpy as np

    return np.asarray(image)
