"""The output of a run over many images, as CSV. A run that was interrupted goes on with it.

The rows of the last image may not be complete, so they are dropped then and the image is sent again.
"""

import csv
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from app.client.client import Answer

HEADER = "image,rank,label,index,score,id,error,model\n"


class OtherRun(Exception):
    """The files of an earlier run do not fit this one. Nothing was sent or written."""


class Entry(NamedTuple):
    """An image in a file."""

    start: int  # bytes before its rows
    image: str
    failed: bool
    model: str


class Output:
    def __init__(self, path: Path | None) -> None:
        """Reads the file if it exists. None: standard output.

        Raises ValueError for another suffix, and for a file that another program has written.
        """
        if path and path.suffix != ".csv":
            raise ValueError(f"{path}: the output is a .csv file")
        self._path = path
        data = path.read_bytes().decode("latin-1") if path and path.exists() else ""  # a byte is a character
        try:
            entries = [*_entries(data)]
        except (ValueError, csv.Error):
            raise ValueError(f"{path} exists, and this program has not written it") from None
        self._length = entries.pop().start if entries else 0  # bytes that are kept
        self.failed = {entry.image: entry.failed for entry in entries}  # every image, in the order of the file
        self._models = {entry.model for entry in entries}
        self._file: BinaryIO = path.open("ab") if path else sys.stdout.buffer

    def begin(self, model: Answer) -> None:
        """Nothing is written before. Raises OtherRun if the file is of another model."""
        self._model = f"{model.name}@{model.digest[:12]}"
        if other := ", ".join(self._models - {self._model}):
            reason = f"{self._path} has images of the model {other}, and the service has {self._model}"
            raise OtherRun(f"{reason}: give another --out, or serve the first model again")
        if self._path:
            self._file.truncate(self._length)
        if not self._length:
            self._write(HEADER)

    def write(self, image: str, result: Answer) -> None:
        """A row per label, the best first; a row with `error` for an image that could not be used."""
        id, error = result.id or "", result.error.detail if result.error else ""
        rows: list[tuple[object, ...]] = [
            (i, p.label, p.index, p.score, id, "") for i, p in enumerate(result.predictions or (), 1)
        ]
        rows = rows or [("", "", "", "", id, error)]
        self._write("".join(_row(image, *row, self._model) for row in rows))
        self.failed[image] = result.error is not None

    def close(self) -> None:
        if self._path:
            self._file.close()

    def _write(self, text: str) -> None:
        self._file.write(text.encode(errors="surrogateescape"))  # names stay the bytes that they are
        self._file.flush()


def _row(*cells: object) -> str:
    r"""csv.writer leaves \r without quotes before Python 3.13."""
    quoted = ('"' + text.replace('"', '""') + '"' if set(text) & set(',"\r\n') else text for text in map(str, cells))
    return ",".join(quoted) + "\n"


def _entries(data: str) -> Iterator[Entry]:
    if HEADER.startswith(data):
        return
    if not data.startswith(HEADER):
        raise ValueError
    start, last, lines = len(HEADER), None, io.StringIO(data)
    lines.seek(start)
    for row in csv.reader(lines):
        end = lines.tell()
        if len(row) != 1 + HEADER.count(",") or data[end - 1] != "\n":
            if end < len(data):
                raise ValueError
            return  # cut while it was written
        if row[0] != last:
            image, error, model = (row[i].encode("latin-1").decode(errors="surrogateescape") for i in (0, 6, 7))
            yield Entry(start, image, failed=error != "", model=model)
        start, last = end, row[0]
