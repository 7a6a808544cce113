"""The output of a run over many images: a file of rows. A run that was interrupted goes on with it.

If the last image does not have all its labels, its rows are dropped and it is sent again.
"""

import csv
import math
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from sys import intern
from typing import BinaryIO, NamedTuple

from vit_serve_client import parquet
from vit_serve_client.client import Answer
from vit_serve_client.lock import locked
from vit_serve_client.rows import ALL, PLAIN, Csv, JsonLines, Row, Text

SUFFIXES = ".csv", ".jsonl", ".parquet"


class OtherRun(Exception):
    """The files of an earlier run do not fit this one. Nothing was sent or written."""


class Best(NamedTuple):
    """The first label of an image."""

    label: str  # empty if the model has none
    score: float


class Entry(NamedTuple):
    """An image in a file."""

    end: int  # bytes of the file up to the end of its rows
    image: str
    labels: int
    best: Best | None  # None if the image could not be used
    familiarity: float | None
    model: str


class Output:
    """`best` has every image in the order of the file; None for one that could not be used. `familiarity` has those
    whose familiarity the model tells.

    A Parquet file cannot grow. Until `finish`, its rows are JSON Lines in a file beside it.
    """

    def __init__(self, path: Path | None, *, no_formulas: bool = False) -> None:
        """Reads the file if it exists. None: CSV on standard output. `no_formulas` is as in Csv.

        Raises ValueError for another suffix, and for a file that another run writes or another program has written.
        """
        suffix = path.suffix if path else ".csv"
        if suffix not in SUFFIXES:
            raise ValueError(f"{path}: the output is a .csv, .jsonl or .parquet file")
        if no_formulas and suffix != ".csv":
            raise ValueError("--no-formulas is for .csv files")
        self._out, self._path, self._parquet = path, path, None
        self._text: Text = Csv(no_formulas=no_formulas) if suffix == ".csv" else JsonLines()
        if path and suffix == ".parquet":
            self._path, self._parquet = parquet.part_of(path), path
        self._file: BinaryIO = locked(self._path) if self._path else sys.stdout.buffer
        try:
            # Whether all rows are in the Parquet file alone.
            self._finished = bool(self._parquet and self._parquet.exists() and not self._file.seek(0, os.SEEK_END))
            self._entries = _entries(self._text.rows(self._lines()))
        except (ValueError, csv.Error):
            self.close()
            raise ValueError(f"{path} exists, and this program has not written it") from None
        self.best = {entry.image: entry.best for entry in self._entries}
        self.familiarity = {e.image: e.familiarity for e in self._entries if e.familiarity is not None}

    def named(self) -> list[str]:
        """The images that could be used."""
        return [image for image, best in self.best.items() if best]

    def begin(self, model: Answer, *, labels: int) -> None:
        """Nothing is written before. Raises OtherRun if the file is of another model or number of labels per image."""
        self._model = f"{model.name}@{model.digest[:12]}"
        if other := ", ".join({entry.model for entry in self._entries} - {self._model}):
            reason = f"{self._out} has images of the model {other}, and the service has {self._model}"
            raise OtherRun(f"{reason}: give another --out, or serve the first model again")
        if self._entries and self._entries[-1].best and self._entries[-1].labels < labels:
            del self.best[self._entries.pop().image]
        if odd := next((entry for entry in self._entries if entry.best and entry.labels != labels), None):
            reason = f"the labels per image are {odd.labels} in {self._out} and would be {labels} in this run"
            raise OtherRun(f"{reason}: give another --out, or another --top-k")
        if self._finished:
            self._file.writelines(line.encode() for line in self._lines())
        length = self._entries[-1].end if self._entries else 0
        if self._path:
            self._file.truncate(length)
        if not length:
            self._text.columns = ALL if model.manifest and model.manifest.familiarity else PLAIN
            self._write(self._text.header)

    def write(self, image: str, result: Answer) -> None:
        """A row per label, the best first; a row with `error` for an image that could not be used; and a row without
        label for one whose model has no labels.
        """
        id, error = result.id, result.error
        of_image = self._model, (error or result).familiarity
        rows = [
            Row(image, rank, one.label, one.index, one.score, id, None, *of_image)
            for rank, one in enumerate(() if error else result.predictions or (), 1)
        ] or [Row(image, None, None, None, None, id, error.detail if error else None, *of_image)]
        self._write("".join(map(self._text.line, rows)))
        self.best[image] = _best(rows[0])
        if rows[0].familiarity is not None:
            self.familiarity[image] = rows[0].familiarity

    def finish(self) -> None:
        """Once no image is left to be sent."""
        if self._path and self._parquet:
            self._finished = False
            rows = (row for _, row in self._text.rows(self._lines()))
            parquet.write_rows(self._parquet, self._text.columns, rows)
            self._file.close()  # first, for Windows
            self._path.unlink()

    def close(self) -> None:
        if self._path:
            self._file.close()
            if self._parquet and self._path.exists() and not self._path.stat().st_size:
                self._path.unlink()

    def _lines(self) -> Iterator[str]:
        """What is written, one line after the other: it may be larger than the memory."""
        if self._finished and self._parquet:
            self._text.columns = parquet.columns(self._parquet)
            yield from map(self._text.line, parquet.rows(self._parquet))
        elif self._path:
            with self._path.open(encoding="latin-1", newline="\n") as file:  # a byte is a character
                yield from file

    def _write(self, text: str) -> None:
        self._file.write(text.encode(errors="surrogateescape"))  # names stay the bytes that they are
        self._file.flush()


def _best(row: Row) -> Best | None:
    if row.error is not None:
        return None
    return Best(intern(row.label or ""), math.nan if row.score is None else row.score)


def _entries(rows: Iterable[tuple[int, Row]]) -> list[Entry]:
    """Raises as `Text.rows`."""
    entries: list[Entry] = []
    for end, row in rows:
        if entries and entries[-1].image == row.image:
            entries[-1] = entries[-1]._replace(end=end, labels=entries[-1].labels + 1)
        else:
            entries.append(Entry(end, row.image, 1, _best(row), row.familiarity, row.model))
    return entries
