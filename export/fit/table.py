"""Images with their labels in a CSV: the columns `file` and `label`, and perhaps `split`."""

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path

from export.fit.labelled import (
    HELD_OUT_NAMES,
    TRAIN,
    TRAIN_NAMES,
    UNLABELLED,
    Labelled,
    Listing,
    checked,
    first_of,
    unused,
)
from export.folder_labels import label_of
from model.checkpoints.checkpoint import first_few

COLUMNS = ("file", "label", "split")
SEPARATORS = re.compile(r"[,;|]")  # of several labels in one cell


def of_csv(path: Path, *, labelled: bool) -> Listing:
    """The images in a CSV, whose files are relative to its folder. Raises ValueError, with the reason."""
    parts: dict[str, list[Labelled]] = defaultdict(list)
    try:
        for row in _rows(path, COLUMNS[:2] if labelled else COLUMNS[:1]):
            label = label_of(row["label"]) if labelled else UNLABELLED
            parts[row.get("split", TRAIN).casefold()].append(Labelled(path.parent / row["file"], label))
        learned, held_out = first_of(TRAIN_NAMES, parts), first_of(HELD_OUT_NAMES, parts)
        if learned is None:
            raise ValueError("it lists no images to learn from")
        used = [part for part in (learned, held_out) if part]
        notes = [*unused(path, parts, used), *_several({label for part in used for _, label in parts[part]})]
    except (OSError, UnicodeDecodeError, csv.Error, ValueError) as error:
        reason = "it is not text in UTF-8" if isinstance(error, UnicodeDecodeError) else error
        raise ValueError(f"--images {path}: {reason}") from None
    judged = tuple(parts[held_out]) if held_out else None
    return checked(Listing(train=tuple(parts[learned]), held_out=judged, notes=tuple(notes)))


def _rows(path: Path, needed: tuple[str, ...]) -> Iterator[dict[str, str]]:
    """The cells of each line by the names of their columns, in lower case. All that are `needed` have a value."""
    with path.open(encoding="utf-8-sig", newline="") as text:
        rows = csv.reader(text, strict=True)
        columns = [name.strip().lower() for name in next(rows, [])]
        if absent := [name for name in needed if name not in columns]:
            separated = re.findall("[;\t]", "".join(columns))
            hint = ". Its columns must be separated by commas" if separated else ""
            raise ValueError(
                f"its first line is {', '.join(columns) or 'empty'}; it lacks {' and '.join(absent)}{hint}"
            )
        if twice := [name for name in COLUMNS if columns.count(name) > 1]:
            raise ValueError(f"two columns are called {twice[0]}")
        for cells in rows:
            if not cells:
                continue
            stripped = [cell.strip() for cell in cells]
            if any(stripped[len(columns) :]):
                raise ValueError(
                    f"line {rows.line_num}: it has {len(cells)} cells, and the first line {len(columns)}. An image has "
                    "one label; a name with a comma stands in quotes"
                )
            row = dict(zip(columns, [*stripped, *[""] * len(columns)], strict=False))
            if empty := [name for name in (*needed, "split") if row.get(name) == ""]:
                raise ValueError(f"line {rows.line_num}: {empty[0]} is empty")
            if row.get("split", TRAIN).casefold() not in (*TRAIN_NAMES, *HELD_OUT_NAMES):
                raise ValueError(
                    f"line {rows.line_num}: split is {row['split']!r}, and not one of "
                    f"{', '.join((*TRAIN_NAMES, *HELD_OUT_NAMES))}"
                )
            yield row


def _several(labels: Collection[str]) -> Iterator[str]:
    """The note on labels that may be several. Raises ValueError where every part of one is in another label too."""
    parts = {label: [part.strip() for part in SEPARATORS.split(label)] for label in sorted(labels)}
    count = Counter(part for of_label in parts.values() for part in {*of_label})
    joined = [label for label, of_label in parts.items() if len({*of_label}) > 1]
    if several := [label for label in joined if all(count[part] > 1 for part in parts[label])]:
        raise ValueError(
            f"the label {several[0]!r} is {len(parts[several[0]])} labels of other images, and an image can have one"
        )
    if joined:
        yield f"each of these is one label, as an image has no more: {first_few(joined, separator=' ')}"
