"""The output of a run over many images, as CSV. A run that was interrupted goes on with it.

If the last image does not have all its labels, its rows are dropped and it is sent again.
"""

import csv
import fcntl
import io
import re
import sys
from pathlib import Path
from typing import BinaryIO, NamedTuple

from vit_serve_client.client import Answer

_FORMULA = re.compile(
    r"[=+\-@\t\r']"
)  # begins what a spreadsheet may run; and ' itself, so that names can be read back
HEADER = "image,rank,label,index,score,id,error,model\n"


class OtherRun(Exception):
    """The files of an earlier run do not fit this one. Nothing was sent or written."""


class Entry(NamedTuple):
    """An image in a file."""

    end: int  # bytes of the file up to the end of its rows
    image: str
    labels: int
    failed: bool
    model: str


class Output:
    def __init__(self, path: Path | None, *, no_formulas: bool = False) -> None:
        """Reads the file if it exists. None: standard output. `no_formulas` sets ' before cells that begin as formulas.

        Raises ValueError for another suffix, and for a file that another run writes or another program has written.
        """
        if path and path.suffix != ".csv":
            raise ValueError(f"{path}: the output is a .csv file")
        self._path = path
        self._no_formulas = no_formulas
        self._file: BinaryIO = path.open("ab") if path else sys.stdout.buffer
        try:
            if path:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            data = path.read_bytes().decode("latin-1") if path else ""  # a byte is a character
            self._entries = _entries(data, no_formulas=no_formulas)
        except BlockingIOError:
            self.close()
            raise ValueError(f"{path}: another run is writing it") from None
        except (ValueError, csv.Error):
            self.close()
            raise ValueError(f"{path} exists, and this program has not written it") from None
        self.failed = {entry.image: entry.failed for entry in self._entries}  # every image, in the order of the file

    def begin(self, model: Answer, *, labels: int) -> None:
        """Nothing is written before. Raises OtherRun if the file is of another model or number of labels per image."""
        self._model = f"{model.name}@{model.digest[:12]}"
        if other := ", ".join({entry.model for entry in self._entries} - {self._model}):
            reason = f"{self._path} has images of the model {other}, and the service has {self._model}"
            raise OtherRun(f"{reason}: give another --out, or serve the first model again")
        if self._entries and not self._entries[-1].failed and self._entries[-1].labels < labels:
            del self.failed[self._entries.pop().image]
        if odd := next((entry for entry in self._entries if not entry.failed and entry.labels != labels), None):
            reason = f"the labels per image are {odd.labels} in {self._path} and would be {labels} in this run"
            raise OtherRun(f"{reason}: give another --out, or another --top-k")
        length = self._entries[-1].end if self._entries else 0
        if self._path:
            self._file.truncate(length)
        if not length:
            self._write(HEADER)

    def write(self, image: str, result: Answer) -> None:
        """A row per label, the best first; a row with `error` for an image that could not be used; and a row without
        label for one whose model has no labels.
        """
        rows: list[tuple[object, ...]] = [("", "", "", "", "", result.error.detail)] if result.error else []
        for rank, prediction in enumerate(result.predictions or (), 1):
            rows.append((rank, prediction.label, prediction.index, prediction.score, result.id or "", ""))
        rows = rows or [("", "", "", "", result.id or "", "")]
        self._write("".join(_row(image, *row, self._model, no_formulas=self._no_formulas) for row in rows))
        self.failed[image] = result.error is not None

    def close(self) -> None:
        if self._path:
            self._file.close()

    def _write(self, text: str) -> None:
        self._file.write(text.encode(errors="surrogateescape"))  # names stay the bytes that they are
        self._file.flush()


def _row(*cells: object, no_formulas: bool) -> str:
    r"""csv.writer leaves \r without quotes before Python 3.13."""
    texts = (f"'{cell}" if no_formulas and _FORMULA.match(str(cell)) else str(cell) for cell in cells)
    quoted = ('"' + text.replace('"', '""') + '"' if set(text) & set(',"\r\n') else text for text in texts)
    return ",".join(quoted) + "\n"


def _entries(data: str, *, no_formulas: bool) -> list[Entry]:
    """Leaves out the last row if it was cut while it was written. Raises ValueError or csv.Error if another program has
    written the file.
    """
    entries: list[Entry] = []
    if HEADER.startswith(data):
        return entries
    if not data.startswith(HEADER):
        raise ValueError
    lines = io.StringIO(data)
    lines.seek(len(HEADER))
    for row in csv.reader(lines):
        end = lines.tell()
        if len(row) != 1 + HEADER.count(",") or data[end - 1] != "\n":
            if end < len(data):
                raise ValueError
            break
        cells = (row[i].removeprefix("'") if no_formulas else row[i] for i in (0, 6, 7))
        image, error, model = (cell.encode("latin-1").decode(errors="surrogateescape") for cell in cells)
        before = entries.pop().labels if entries and entries[-1].image == image else 0
        entries.append(Entry(end, image, before + 1, failed=error != "", model=model))
    return entries
