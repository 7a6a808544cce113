"""The rows of an output, and two ways to write them as text: an image has a row for each of its labels."""

import csv
import json
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

# Begins what a spreadsheet may run; and ' itself, so that names can be read back.
_FORMULA = re.compile(r"[=+\-@\t\r']")


class Row(NamedTuple):
    image: str
    rank: int | None  # from 1; None without a label
    label: str | None
    index: int | None  # type: ignore[assignment]  # a column in place of tuple's method
    score: float | None
    id: str | None
    error: str | None  # why the image could not be used
    model: str
    familiarity: float | None = None  # of the image, where the model knows its images; 0 to 1


ALL: tuple[str, ...] = Row._fields
PLAIN = ALL[:-1]  # of models that do not know their images
COLUMNS = PLAIN, ALL  # that an output may have


class Text(Protocol):
    """How rows are written."""

    columns: tuple[str, ...]  # of COLUMNS; `rows` sets those that it finds

    @property
    def header(self) -> str: ...

    def line(self, row: Row) -> str: ...

    def rows(self, lines: Iterable[str]) -> Iterator[tuple[int, Row]]:
        """Each with its end in the file of these lines, in which a character is a byte (latin-1). A last row that was
        cut while it was written is left out. Raises ValueError or csv.Error if another program has written it.
        """
        ...


class Csv:
    def __init__(self, *, no_formulas: bool = False) -> None:
        """`no_formulas` sets ' before cells that begin as formulas."""
        self._no_formulas = no_formulas
        self.columns = PLAIN

    @property
    def header(self) -> str:
        return _header(self.columns)

    def line(self, row: Row) -> str:
        r"""csv.writer leaves \r without quotes before Python 3.13."""
        cells = ("" if cell is None else str(cell) for cell in row[: len(self.columns)])
        texts = (f"'{cell}" if self._no_formulas and _FORMULA.match(cell) else cell for cell in cells)
        quoted = ('"' + text.replace('"', '""') + '"' if set(text) & set(',"\r\n') else text for text in texts)
        return ",".join(quoted) + "\n"

    def rows(self, lines: Iterable[str]) -> Iterator[tuple[int, Row]]:
        rest = iter(lines)
        last = next(rest, "")
        end = len(last)
        if last not in map(_header, COLUMNS):
            if any(_header(columns).startswith(last) for columns in COLUMNS):  # it was cut
                return
            raise ValueError
        self.columns = tuple(last.strip().split(","))

        def read() -> Iterator[str]:
            nonlocal end, last
            for last in rest:
                end += len(last)
                yield last

        for cells in csv.reader(read()):
            if len(cells) != len(self.columns) or not last.endswith("\n"):
                if next(rest, ""):
                    raise ValueError
                return
            texts = (cell.removeprefix("'") if self._no_formulas else cell for cell in cells)
            image, rank, label, index, score, id, error, model, *familiarity = (
                text.encode("latin-1").decode(errors="surrogateescape") for text in texts
            )
            numbers = int(rank) if rank else None, label, int(index) if index else None, float(score) if score else None
            yield end, Row(image, *numbers, id, error or None, model, *(float(n) if n else None for n in familiarity))


def _header(columns: tuple[str, ...]) -> str:
    return ",".join(columns) + "\n"


class JsonLines:
    """An object in each line. A byte of a name that is no UTF-8 is a half of a surrogate pair, as json.loads gives it
    back to Python.
    """

    header = ""

    def __init__(self) -> None:
        self.columns = PLAIN

    def line(self, row: Row) -> str:
        return json.dumps(dict(zip(self.columns, row, strict=False))) + "\n"

    def rows(self, lines: Iterable[str]) -> Iterator[tuple[int, Row]]:
        end = 0
        for line in lines:
            end += len(line)
            if not line.endswith("\n"):
                return
            try:
                cells = json.loads(line)
                self.columns = tuple(cells)
            except TypeError:
                raise ValueError from None
            if self.columns not in COLUMNS:
                raise ValueError
            yield end, Row(**cells)
