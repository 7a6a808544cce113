"""The output of a run over many images: CSV or JSON lines. A run that was interrupted goes on with it.

The last image may be there in part, so it is dropped then and asked again.
"""

import csv
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from app.client.bulk import NotStarted
from app.client.client import Answer

HEADER = "image,rank,label,index,score,id,error,model\n"
JSON_START = '{"image": "'


class Entry(NamedTuple):
    """Of one image in a file."""

    start: int  # bytes before it
    image: str
    failed: bool
    model: str


class Output:
    def __init__(self, path: Path | None) -> None:
        """Reads the file, if it is there. None: standard output, as CSV.

        Raises ValueError for another suffix, and for a file that another program has written.
        """
        if path and path.suffix not in (".csv", ".jsonl"):
            raise ValueError(f"{path}: the output is a .csv or a .jsonl file")
        self._path = path
        self._is_csv = path is None or path.suffix == ".csv"
        data = path.read_bytes().decode("latin-1") if path and path.exists() else ""
        try:
            entries = [*(_csv_entries(data) if self._is_csv else _json_entries(data))]
        except (ValueError, KeyError, TypeError, csv.Error):
            raise ValueError(f"{path} exists, and this program has not written it") from None
        self._length = entries.pop().start if entries else 0  # bytes that are kept
        self.failed = {entry.image: entry.failed for entry in entries}  # every image, in the order of the file
        self._models = {entry.model for entry in entries}
        self._file: BinaryIO = path.open("ab") if path else sys.stdout.buffer

    def begin(self, model: Answer) -> None:
        """Nothing is written before. Raises NotStarted if the file is of another model."""
        self._model = f"{model.name}@{model.digest[:12]}"
        if other := ", ".join(self._models - {self._model}):
            said = f"{self._path} has images of the model {other}, and the service has {self._model}"
            raise NotStarted(f"{said}: give another --out, or serve the first model again")
        if self._path:
            self._file.truncate(self._length)
        if self._is_csv and not self._length:
            self._write(HEADER)

    def write(self, image: str, result: Answer) -> None:
        self._write((_csv if self._is_csv else _json)(image, result, self._model))
        self.failed[image] = result.error is not None

    def close(self) -> None:
        if self._path:
            self._file.close()

    def _write(self, text: str) -> None:
        self._file.write(text.encode(errors="surrogateescape"))  # names stay the bytes that they are
        self._file.flush()


def _csv(image: str, result: Answer, model: str) -> str:
    """A row per label, the best first; a row with `error` for an image that could not be used."""
    if result.error:
        return _row(image, "", "", "", "", "", result.error.detail, model)
    id = result.id or ""
    rows = [_row(image, i, p.label, p.index, p.score, id, "", model) for i, p in enumerate(result.predictions, 1)]
    return "".join(rows) or _row(image, "", "", "", "", id, "", model)


def _row(*cells: object) -> str:
    r"""csv.writer leaves \r without quotes before Python 3.13."""
    quoted = ('"' + text.replace('"', '""') + '"' if set(text) & set(',"\r\n') else text for text in map(str, cells))
    return ",".join(quoted) + "\n"


def _json(image: str, result: Answer, model: str) -> str:
    """An object per image: its name, the model, and the service's `result` or `error`."""
    return json.dumps({"image": image, "model": model, **(result if result.error else {"result": result})}) + "\n"


def _csv_entries(data: str) -> Iterator[Entry]:
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


def _json_entries(data: str) -> Iterator[Entry]:
    if not JSON_START.startswith(data[: len(JSON_START)]):
        raise ValueError
    start = 0
    for line in data.split("\n")[:-1]:
        found = json.loads(line)
        yield Entry(start, found["image"], failed="error" in found, model=found["model"])
        start += len(line) + 1
