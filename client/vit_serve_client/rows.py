"""The rows of an output, and two ways to write them as text: an image has a row for each of its labels."""

import csv
import io
import json
import re
from collections.abc import Iterator
from typing import NamedTuple, Protocol

_FORMULA = re.compile(
    r"[=+\-@\t\r']"
)  # begins what a spreadsheet may run; and ' itself, so that names can be read back


class Row(NamedTuple):
    image: str
    rank: int | None  # from 1; None without a label
    label: str | None
    index: int | None  # type: ignore[assignment]  # a column in place of tuple's method
    score: float | None
    id: str | None
    error: str | None  # why the image could not be used
    model: str


class Text(Protocol):
    """How rows are written."""

    header: str

    def line(self, row: Row) -> str: ...

    def rows(self, data: str) -> Iterator[tuple[int, Row]]:
        """Each with its end in `data`, in which a character is a byte (latin-1). A last row that was cut while it was
        written is left out. Raises ValueError or csv.Error if another program has written it.
        """
        ...


class Csv:
    header = ",".join(Row._fields) + "\n"

    def __init__(self, *, no_formulas: bool = False) -> None:
        """`no_formulas` sets ' before cells that begin as formulas."""
        self._no_formulas = no_formulas

    def line(self, row: Row) -> str:
        r"""csv.writer leaves \r without quotes before Python 3.13."""
        cells = ("" if cell is None else str(cell) for cell in row)
        texts = (f"'{cell}" if self._no_formulas and _FORMULA.match(cell) else cell for cell in cells)
        quoted = ('"' + text.replace('"', '""') + '"' if set(text) & set(',"\r\n') else text for text in texts)
        return ",".join(quoted) + "\n"

    def rows(self, data: str) -> Iterator[tuple[int, Row]]:
        if self.header.startswith(data):
            return
        if not data.startswith(self.header):
            raise ValueError
        lines = io.StringIO(data)
        lines.seek(len(self.header))
        for cells in csv.reader(lines):
            end = lines.tell()
            if len(cells) != len(Row._fields) or data[end - 1] != "\n":
                if end < len(data):
                    raise ValueError
                return
            texts = (cell.removeprefix("'") if self._no_formulas else cell for cell in cells)
            image, rank, label, index, score, id, error, model = (
                text.encode("latin-1").decode(errors="surrogateescape") for text in texts
            )
            numbers = int(rank) if rank else None, label, int(index) if index else None, float(score) if score else None
            yield end, Row(image, *numbers, id, error or None, model)


class JsonLines:
    """An object in each line. A byte of a name that is no UTF-8 is a half of a surrogate pair, as json.loads gives it
    back to Python.
    """

    header = ""

    def line(self, row: Row) -> str:
        return json.dumps(row._asdict()) + "\n"

    def rows(self, data: str) -> Iterator[tuple[int, Row]]:
        end = 0
        for line in data.splitlines(keepends=True):
            end += len(line)
            if not line.endswith("\n"):
                return
            try:
                yield end, Row(**json.loads(line))
            except TypeError:
                raise ValueError from None
