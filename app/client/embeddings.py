"""The array of embeddings: a row per image, in the order of the output. A text file beside it names the rows.

Row, name and the count in the array's header are written in this order, and after them the image's part of the output.
So every row that counts has its name at any time, and a later run drops what the output does not have.
"""

import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from app.client.bulk import NotStarted

AHEAD = 2  # images that may be missing in the output when it is opened again: the last, and one that was not written


class Embeddings:
    def __init__(self, path: Path, features: int, images: Iterable[str]) -> None:
        """`images` are those of the output. Raises NotStarted if the files are not of a run that wrote it."""
        lines = [_line(image) for image in images]
        self._count, self._features = len(lines), features
        names = path.with_suffix(".txt")
        if not lines and not any(file.exists() and file.stat().st_size for file in (path, names)):
            path.write_bytes(self._header())
        elif not _belongs(path, names, lines, features):
            said = f"{path} and {names.name} do not belong to the images of the output"
            raise NotStarted(f"{said}: give another --out and another --embeddings")
        self._rows, self._names = path.open("r+b"), names.open("ab")
        self._names.truncate(sum(map(len, lines)))
        self._write(0, self._header())

    def append(self, image: str, vector: Sequence[float] | None) -> None:
        """A row of NaN if there is no embedding."""
        row = np.asarray(vector or [np.nan] * self._features, "<f4").tobytes()
        self._write(len(self._header()) + self._count * len(row), row)
        self._names.write(_line(image))
        self._names.flush()
        self._count += 1
        self._write(0, self._header())

    def close(self) -> None:
        self._rows.close()
        self._names.close()

    def _write(self, place: int, data: bytes) -> None:
        self._rows.seek(place)
        self._rows.write(data)
        self._rows.flush()

    def _header(self) -> bytes:
        """NumPy pads it, so its length does not depend on the count."""
        out = io.BytesIO()
        shape = (self._count, self._features)
        np.lib.format.write_array_header_1_0(out, {"descr": "<f4", "fortran_order": False, "shape": shape})
        return out.getvalue()


def _belongs(path: Path, names: Path, lines: list[bytes], features: int) -> bool:
    try:
        array, text, kept = np.load(path, mmap_mode="r"), names.read_bytes(), b"".join(lines)
    except (OSError, EOFError, ValueError):
        return False
    if array.dtype != np.dtype("<f4") or array.shape[1:] != (features,) or len(array) < len(lines):
        return False
    return text.startswith(kept) and text[len(kept) :].count(b"\n") <= AHEAD


def _line(image: str) -> bytes:
    """The name itself; as JSON if it has a line break or looks like JSON."""
    name = json.dumps(image) if image.startswith('"') or set(image) & set("\r\n") else image
    return f"{name}\n".encode(errors="surrogateescape")
