"""The output of a run over many images: CSV or JSON lines, which a run that was interrupted goes on with.

What one image gets is written in one piece. After an interruption the last image may be there in part, so what the file
has of it is dropped, and it is asked again.
"""

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TextIO

from app.client.answers import Problem, Result

COLUMNS = ("image", "rank", "label", "index", "score", "id", "error")


class Entry(NamedTuple):
    """What a file has of one image."""

    image: str
    text: str
    failed: bool


class Format(Protocol):
    header: str
    start: str  # what every file begins with

    def text(self, image: str, outcome: Result | Problem) -> str:
        """What stands in the file for one image, with a line's end."""
        ...

    def read(self, text: str) -> list[Entry]:
        """Of a file without its header, as far as its lines are whole."""
        ...


class Csv:
    """A row for each label, the best first; a row with `error` for an image that could not be used."""

    header = start = ",".join(COLUMNS) + "\n"

    def text(self, image: str, outcome: Result | Problem) -> str:
        if isinstance(outcome, Problem):
            return self._rows([[image, "", "", "", "", "", outcome.detail]])
        kept = outcome.id or ""
        rows = [[image, i, p.label, p.index, p.score, kept, ""] for i, p in enumerate(outcome.predictions, start=1)]
        return self._rows(rows or [[image, "", "", "", "", kept, ""]])

    def read(self, text: str) -> list[Entry]:
        found: list[tuple[str, list[list[str]]]] = []
        rows = [*csv.reader(io.StringIO(text))]
        if rows and (len(rows[-1]) < len(COLUMNS) or not text.endswith("\n")):
            del rows[-1]
        for row in rows:
            if found and found[-1][0] == row[0]:
                found[-1][1].append(row)
            else:
                found.append((row[0], [row]))
        return [Entry(image, self._rows(rows), failed=rows[0][-1] != "") for image, rows in found]

    def _rows(self, rows: Iterable[Iterable[Any]]) -> str:
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(rows)
        return out.getvalue()


class JsonLines:
    """An object for each image: what the service answers of it, with its name."""

    header, start = "", '{"image": "'

    def text(self, image: str, outcome: Result | Problem) -> str:
        kind = "error" if isinstance(outcome, Problem) else "result"
        return json.dumps({"image": image, kind: outcome.model_dump(exclude_none=True)}) + "\n"

    def read(self, text: str) -> list[Entry]:
        whole = [(line, json.loads(line)) for line in text.splitlines(keepends=True) if line.endswith("\n")]
        return [Entry(found["image"], line, failed="error" in found) for line, found in whole]


FORMATS: dict[str, Format] = {".csv": Csv(), ".jsonl": JsonLines()}


class Ledger:
    """Belongs to one thread."""

    def __init__(self, out: TextIO, form: Format, *, kept: Iterable[Entry] = ()) -> None:
        self._out, self._form = out, form
        self.failed = {entry.image: entry.failed for entry in kept}  # of every image that is in the file

    def write(self, image: str, outcome: Result | Problem) -> None:
        self._out.write(self._form.text(image, outcome))
        self._out.flush()
        self.failed[image] = isinstance(outcome, Problem)

    def close(self) -> None:
        self._out.close()


def open_ledger(path: Path) -> Ledger:
    """A new file, or the one that is there without its last image. Raises ValueError for a file of another kind."""
    form = FORMATS.get(path.suffix)
    if form is None:
        raise ValueError(f"{path}: the output is a .csv or a .jsonl file")
    kept: list[Entry] = []
    if path.exists() and not form.start.startswith(text := path.read_bytes().decode(errors="surrogateescape")):
        if not text.startswith(form.start):
            raise ValueError(f"{path} exists, and this program has not written it")
        try:
            kept = form.read(text.removeprefix(form.header))[:-1]
        except (ValueError, KeyError, IndexError):
            raise ValueError(f"{path} exists, and this program has not written it") from None
    fresh = path.with_name(f".{path.name}.new")
    with _opened(fresh, "w") as file:
        file.write(form.header + "".join(entry.text for entry in kept))
    fresh.replace(path)
    return Ledger(_opened(path, "a"), form, kept=kept)


def _opened(path: Path, mode: Literal["w", "a"]) -> TextIO:
    """Names of images stay the bytes that they are."""
    return path.open(mode, encoding="utf-8", errors="surrogateescape", newline="")
